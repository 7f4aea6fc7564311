"""Forks the workers of one version of the application: the code as it is after a save.

If the version cannot be loaded, its workers serve a page that says why.
"""

from __future__ import annotations

import gc
import os
import sys
import time

from poorhttp import logs
from poorhttp._core import note_fd
from poorhttp.errors import ApplicationError, Stopped
from poorhttp.logs.sink import has_relay
from poorhttp.plugins.dev import threads_end
from poorhttp.plugins.dev.frames import strip_frames
from poorhttp.plugins.dev.options import Development
from poorhttp.plugins.dev.reload import own_writes, pyc_loader
from poorhttp.plugins.dev.reload.shared_state import RUNNING
from poorhttp.process import fork
from poorhttp.process.control_channel import AGAIN, BROKEN, HERE, SERVING
from poorhttp.supervisor.spawner import Spawner
from poorhttp.worker import start
from poorhttp.worker.stop_signals import GRACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from _typeshed.wsgi import WSGIApplication

    from poorhttp.config.settings import Settings
    from poorhttp.plugins.dev.reload.fork_server import ForkServer
    from poorhttp.plugins.dev.reload.preimport.preimport import Preimporter
    from poorhttp.plugins.dev.reload.shared_state import SharedState
    from poorhttp.process.worker_context import WorkerContext
    from poorhttp.worker.stop_signals import StopSignals


#: Seconds within which the watcher reports a file that was saved while it was loaded.
STALE_WAIT = 0.5

#: Seconds for which a version that cannot be loaded waits for older ones to end before it shows an
#: error page. Older versions that have answered everything end within `threads_end.WAIT`.
OLDER_WAIT = 2.5

#: Nanoseconds for which the end of an older version may have come too late for this one.
JUST_ENDED = 250_000_000


class VersionSpawner(Spawner):
    """Forks the workers of one version of one service.

    Attributes:
        number: of the version, from 1, for all services together.
        name: unique among all versions of this and of other servers.
        shared: the state that all versions share.
        scoreboard: of its workers and those of the service's other versions.
        page: served in place of an application that cannot or need not be loaded.
        modules_before: number of modules imported before the project's own.
        early: serves `page` only until the version of the same number has loaded.
        is_last: it is not loaded once more if it fails.
    """

    def __init__(
        self,
        number: int,
        shared: SharedState,
        service_index: int,
        page: WSGIApplication | None = None,
        *,
        early: bool = False,
        fork_server: ForkServer | None = None,
    ) -> None:
        self.number = number
        self.early = early
        self.is_last = False
        self.name = f"{shared.name}-{number}{'-early' if early else ''}"
        self.shared = shared
        self.service_index = service_index
        super().__init__(shared.services[service_index], shared.scoreboards[service_index])
        self.page = page
        self.modules_before = 0
        self._broken = page is not None
        self._fork_server = None if page is not None else fork_server

    # In the main process

    @property
    def orders(self) -> bool:
        """Whether the fork server forks the workers of this version."""
        return self._fork_server is not None and not self._fork_server.is_unavailable

    @property
    def ready(self) -> bool:
        """Whether a worker can be forked now."""
        server = self._fork_server
        return server is None or not self.orders or (server.ready and server.is_free())

    def order(self, context: WorkerContext) -> bool:
        """Have the fork server fork a worker, which reports itself; `False` if that fails."""
        return self._fork_server is not None and self._fork_server.order(self, context)

    def fork(self, context: WorkerContext) -> int:
        """Fork a worker from the main process; return its pid.

        Raises:
            OSError: it cannot be forked.
        """
        parent = os.getpid()
        return fork.fork(lambda: self.run(context, parent))

    # In a worker

    def run(
        self, context: WorkerContext, parent: int, preimporter: Preimporter | None = None
    ) -> NoReturn:
        """Load and serve the application, in a process that has just been forked.

        Args:
            context: the worker's.
            parent: the main process.
            preimporter: of the fork server, if that has forked this process.
        """
        service = self.service

        def run(signals: StopSignals) -> None:
            if preimporter is not None:
                start.write(context, HERE)
            # The fork server receives it only for this process.
            note_fd(context.channel)
            service.begin(signals)
            self._show_tracebacks()
            # The first import leaves so many objects that each collection would take long.
            gc.disable()
            self.modules_before = len(sys.modules)
            if preimporter is not None:
                preimporter.prepare_generation()
            else:
                pyc_loader.install(self.shared.project)
            if self.page is None:
                own_writes.report(self.shared)
            # Nobody waits for a version that does not serve yet, and its code may catch Stopped.
            fork.set_parent_death_signal(parent, threads_end.LONGEST)
            application = self.page or self._load(context)
            fork.set_parent_death_signal(parent, signals.timeout + 2 * GRACE)
            service.application = _wrap(application, service.settings, self, preimporter)
            service.loaded = True
            # Loaded objects live as long as the process: the collector need not visit them.
            gc.freeze()
            gc.enable()
            self._wait_if_stale()
            # Connections pass from lower to higher ranks; an early page stands between two
            # generations.
            rank = 2 * self.number - self.early
            context.handoff = (*self.shared.handoff_sockets(self.service_index), rank)
            try:
                service.start_errors_muted = True
                self._serve(signals, context)
            except ApplicationError as error:
                # Its startup has failed: the lifespan of an ASGI application.
                service.start_errors_muted = False
                page = self._page(error, context)
                service.application = _wrap(page, service.settings, self, preimporter)
                self._serve(signals, context)

        service.loaded = self.page is not None
        start.run_child(run, parent, f"version {self.number}", service)

    def _serve(self, signals: StopSignals, context: WorkerContext) -> None:
        """Start the application, and serve it.

        Raises:
            ApplicationError: its startup has failed.
        """

        def ready() -> None:
            dump.disable()
            try:
                os.write(context.channel, BROKEN + SERVING if self._broken else SERVING)
            except BrokenPipeError:
                # The next generation has replaced this one, which has accepted no connection.
                os._exit(0)

        dump = self.shared.stack_dump
        dump.enable(self.service.settings.mode)
        self.service.serve(ready, signals, context)

    def _wait_if_stale(self) -> None:
        """Do not serve code of which a file was saved meanwhile: a save may be loaded by halves.

        The watcher reports the save, and the main process ends this worker. If no report comes, for
        instance because the file is excluded, the worker serves after `STALE_WAIT` seconds.
        """
        until = time.monotonic() + STALE_WAIT
        while any(pyc_loader.changed()) and time.monotonic() < until:
            time.sleep(0.005)

    def _show_tracebacks(self) -> None:
        """Show exceptions in colours if the error log is the terminal."""
        settings = self.service.settings
        is_on = settings.of(Development).debug != "off"
        if is_on and settings.error_log == "-" and not has_relay(settings):

            def show(message: str, error: BaseException) -> None:
                # A large module, imported only when there is an exception.
                from poorhttp.plugins.dev import terminal_tracebacks

                terminal_tracebacks.show(message, error, self.shared.project.owns)

            logs.error_log.show = show

    def _load(self, context: WorkerContext) -> WSGIApplication:
        """Return the application for this worker, or a page about its failure.

        Raises:
            Stopped: another worker is to load it, because older versions have ended only now.
        """
        service = self.service
        self.shared.stack_dump.enable(service.settings.mode)
        try:
            service.load()
            start.call_start_hooks(service.settings, context.index)
            assert service.application is not None
            return service.application
        except Stopped:
            raise
        except ApplicationError as error:
            return self._page(error, context)
        finally:
            self.shared.stack_dump.disable()

    def _page(self, error: ApplicationError, context: WorkerContext) -> WSGIApplication:
        """Return a page in the place of the application, which cannot be loaded or started.

        Raises:
            ApplicationError: the same, if no code of the project has run: the target is misspelled,
                and the server does not start.
            Stopped: as of `_load`.
        """
        if self.number == 1 and strip_frames(error) is error:
            raise error
        if not _is_syntax_error(error) and self._wait_for_older(context):
            raise Stopped from None
        self._broken = True
        for hooks in self.service.hooks:
            # They forget what was loaded.
            hooks.before_loading(self.service.settings)
        return _load_error(error, self.service.settings, self)

    def _wait_for_older(self, context: WorkerContext) -> bool:
        """Wait until older versions have ended: they may hold a port or lock that this one needs.

        Returns:
            Whether they have ended too late for this load. Otherwise they go on, or none did run.
        """
        shared, which = self.shared, self.service_index
        failed = time.monotonic_ns()
        if 0 <= shared.older(which) < failed - JUST_ENDED:
            return False
        # In any case it is loaded once more when they have ended.
        start.write(context, AGAIN)
        until = time.monotonic() + OLDER_WAIT
        while shared.older(which) == RUNNING and time.monotonic() < until:
            time.sleep(0.005)
        return shared.older(which) != RUNNING


def _wrap(
    application: WSGIApplication,
    settings: Settings,
    spawner: VersionSpawner,
    preimporter: Preimporter | None,
) -> WSGIApplication:
    """Wrap an application: profiles, tracking of imports, live reload, as far as options ask."""
    from poorhttp.config.address import is_raw_tcp
    from poorhttp.plugins.dev.debug.middleware import ErrorPages
    from poorhttp.plugins.dev.live_reload import LiveReload, script
    from poorhttp.plugins.dev.reload.import_tracker import ImportTracker

    if is_raw_tcp(settings.target):
        # A handler of raw TCP connections has no pages.
        return application
    # A page in place of an application reloads itself even without the option `live`.
    adds_script = settings.of(Development).live or getattr(application, "reloads", False)
    if settings.of(Development).profile:
        from poorhttp.plugins.dev import profiler

        if profiler.profiles is not None:
            folder = profiler.profiles.folder
            if isinstance(application, ErrorPages):
                # Inside the error pages, whose making must not count as the application's time.
                inner = application.application
                application.application = profiler.ProfiledApplication(inner, settings, folder)
            else:
                application = profiler.ProfiledApplication(application, settings, folder)
            application = profiler.ProfilePages(application, settings, folder)
    application = ImportTracker(application, spawner.shared, preimporter, spawner.modules_before)
    if settings.of(Development).live:
        spawner.service.appended = script(spawner.name)
    return LiveReload(application, spawner.name, adds_script=adds_script)


def _load_error(
    error: BaseException, settings: Settings, spawner: VersionSpawner
) -> WSGIApplication:
    """Log why a version cannot be loaded, and return a page that says so."""
    from poorhttp import logs
    from poorhttp.plugins.dev.debug.load_error_page import load_error_page
    from poorhttp.plugins.dev.frames import source_folders, strip_frames

    # The exception that the application has raised, without the server's wrapper and frames.
    cause = strip_frames(error)
    if cause is error:
        # The message says everything: the traceback has no frame of the application.
        cause.__traceback__ = None
    logs.exception(f"version {spawner.number} cannot be loaded", cause)
    # The faulty file may be outside of the project, in an editable install: have it watched.
    spawner.shared.report_folders(source_folders(cause))
    return load_error_page(cause, settings)


def _is_syntax_error(error: BaseException) -> bool:
    """Whether a source file cannot be compiled, which no other process has to do with."""
    cause: BaseException | None = error
    while isinstance(cause, ApplicationError):
        cause = cause.__cause__
    return isinstance(cause, SyntaxError)
