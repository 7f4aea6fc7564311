"""A version of the application: a worker like all others, from its beginning to its first request.

One that cannot be loaded serves a page that says why.
"""

from __future__ import annotations

import gc
import os
import sys
import time

from poorhttp import logs
from poorhttp.dev.reload import pyc_loader
from poorhttp.dev.reload.application import load_error, wrap
from poorhttp.errors import ApplicationError, Stopped
from poorhttp.logs.frames import strip_frames
from poorhttp.process.control_channel import BROKEN, SERVING
from poorhttp.worker import start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from _typeshed.wsgi import WSGIApplication

    from poorhttp.dev.reload.preimport.preimport import Preimporter
    from poorhttp.dev.reload.shared_state import SharedState
    from poorhttp.dev.reload.watch.project import Project
    from poorhttp.process.worker_context import WorkerContext
    from poorhttp.worker.service import Service
    from poorhttp.worker.stop_signals import StopSignals


#: Seconds that a save may take to be noticed.
STALE_WAIT = 0.5


class Generation:
    """What a process of a version knows of it.

    Attributes:
        number: counts from 1.
        name: tells it from every other one, of this server and of others.
        shared: what it has in common with the others.
        service_index: number of the service.
        page: what its application is, if it is not to be loaded.
        modules_before: how many modules had been imported before its own.
        early: it serves that page until the one of the same number does, which is being loaded.
    """

    def __init__(
        self,
        number: int,
        shared: SharedState,
        service_index: int,
        page: WSGIApplication | None = None,
        *,
        early: bool = False,
    ) -> None:
        self.number = number
        self.early = early
        self.name = f"{shared.name}-{number}{'-early' if early else ''}"
        self.shared = shared
        self.service_index = service_index
        self.page = page
        self.modules_before = 0
        self._broken = page is not None

    @property
    def project(self) -> Project:
        """What is the user's own."""
        return self.shared.project

    @property
    def service(self) -> Service:
        """What it serves."""
        return self.shared.services[self.service_index]

    def run(
        self, context: WorkerContext, parent: int, preimporter: Preimporter | None = None
    ) -> NoReturn:
        """Be a worker, in a process that was just forked.

        Args:
            context: where it belongs.
            parent: the main process.
            preimporter: what was imported before the fork, if anything was.
        """
        service = self.service

        def run(signals: StopSignals) -> None:
            self._show_tracebacks()
            # The collector would look at all that the first import leaves, again and again.
            gc.disable()
            self.modules_before = len(sys.modules)
            if preimporter is not None:
                preimporter.prepare_generation()
            else:
                pyc_loader.install(self.project)
            application = self.page or self._load()
            service.application = wrap(application, service.settings, self, preimporter)
            service.loaded = True
            # What was loaded lives as long as this version: nobody need look through it.
            gc.freeze()
            gc.enable()
            self._wait_if_stale()
            # Who comes between two versions inherits from the one, and gives to the other.
            rank = 2 * self.number - self.early
            context.handoff = (*self.shared.handoff_sockets(self.service_index), rank)

            def ready() -> None:
                try:
                    os.write(context.channel, BROKEN + SERVING if self._broken else SERVING)
                except BrokenPipeError:
                    # There is a successor by now, and nobody has been let in.
                    os._exit(0)

            service.serve(ready, signals, context)

        service.loaded = self.page is not None
        start.run_child(run, parent, f"version {self.number}", service)

    def _wait_if_stale(self) -> None:
        """Serve nobody if files were saved while they were loaded: it may be half of each save.

        The main process is being told of that, and ends us. If it is not, it would be in vain.
        """
        until = time.monotonic() + STALE_WAIT
        while any(pyc_loader.changed()) and time.monotonic() < until:
            time.sleep(0.005)

    def _show_tracebacks(self) -> None:
        """Have what is raised shown to a person, where that is who reads the log."""
        settings = self.service.settings
        if settings.debug != "off" and settings.error_log == "-" and settings.log_config is None:

            def show(message: str, error: BaseException) -> None:
                # It is large, and there may be nothing to show.
                from poorhttp.dev import terminal_tracebacks

                terminal_tracebacks.show(message, error, self.project)

            logs.error_log.show = show

    def _load(self) -> WSGIApplication:
        """Return the application, or a page that says why there is none."""
        service = self.service
        self.shared.stack_dump.enable()
        try:
            service.load()
            start.call_after_fork_hooks(service.settings)
            assert service.application is not None
            return service.application
        except Stopped:
            raise
        except ApplicationError as error:
            if self.number == 1 and strip_frames(error) is error:
                # Nothing of the user's has run: the target was not written right.
                raise
            self._broken = True
            return load_error(error, service.settings, self)
        finally:
            self.shared.stack_dump.disable()
