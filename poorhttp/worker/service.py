"""One service of the configuration: its listening sockets, routes and application."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from poorhttp import logs
from poorhttp._core import trim_memory
from poorhttp.config import loader
from poorhttp.config.address import url
from poorhttp.config.settings import Settings
from poorhttp.config.version import VERSION
from poorhttp.net import sockets, transport
from poorhttp.net.listener import Listener, close_others
from poorhttp.process.privileges import Privileges
from poorhttp.process.worker_context import WorkerContext
from poorhttp.targets.routes import Routes
from poorhttp.worker import mode, plugin_hooks
from poorhttp.worker.stop_signals import StopSignals
from poorhttp.worker.worker import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from poorhttp.process.shared_imports import SharedImports


class Service:
    """Everything of a service that is decided before a worker is forked.

    Attributes:
        listeners: its listening sockets.
        folder: the folder of its relative paths.
        transport: what carries HTTP at its addresses of other protocols; None if there are none.
        routes: which application or folder answers.
        application: `None` until it is loaded.
        privileges: user and group of its workers.
        hooks: those of plug-ins, which may set the attributes from `notice` on.
    """

    #: Which modules its workers share; `None` if they share none, or all that they will.
    imports: SharedImports | None = None
    loaded = False  # the application is loaded, in this process or in the one that has forked it
    notice = ""  # further lines of the message that the server is ready
    #: Appended to static HTML pages: the parts before and after the path prefix of the client.
    appended: tuple[str, str] | None = None
    own_paths: Sequence[str] = ()  # prefixes that plug-ins answer, which static files do not hide
    takes_times = False  # workers measure requests, and keep the slowest of them
    #: Called by a worker that ends, with its exit code: ends threads of the application, for which
    #: it would wait until `graceful_timeout`.
    end_threads: Callable[[int], None] | None = None
    serving = False  # the server as a whole serves, so errors go to the error log
    kills_stopped = True  # workers that a signal has stopped are killed and replaced
    start_errors_muted = False  # those of a worker are not logged: there were many of them

    def __init__(
        self,
        settings: Settings,
        application: WSGIApplication | None = None,
        already_open: Sequence[Listener] = (),
    ) -> None:
        """Open the listening sockets that are not in `already_open`.

        Raises:
            poorhttp.errors.Failure: the mode, an address or a folder cannot be used.
        """
        self.settings = settings
        self.hooks = plugin_hooks.used(settings)
        for hooks in self.hooks:
            hooks.check(settings)
        self.folder = os.getcwd()
        self.routes = Routes(settings, application)
        self.application = self.routes.application
        self.mode = mode.load(settings)
        self.privileges = Privileges(settings)
        logs.make_access_log(settings, self.privileges.owner)
        self.transport = transport.load(settings)
        if self.transport is not None:
            self.transport.log_warnings()
        self.listeners = sockets.open_listeners(
            settings, already_open, approve=plugin_hooks.approver(self.hooks)
        )
        if settings.access_log is None and os.isatty(2):
            self.notice = "logs no requests here; --access-log - shows them"
        for hooks in self.hooks:
            hooks.opened(self)

    def change_folder(self) -> None:
        """Change to its folder: during a reload the main process is in that of the new version.

        A folder that was removed is ignored; later errors name the files that are missing.
        """
        with suppress(OSError):
            os.chdir(self.folder)

    def begin(self, signals: StopSignals) -> None:
        """Prepare this process, which is a worker, by the hooks of plug-ins."""
        for hooks in self.hooks:
            hooks.start(self.settings, signals)

    def load(self) -> None:
        """Prepare this process, which serves or is forked, and load the application.

        Does nothing if it was loaded before the fork.

        Raises:
            poorhttp.errors.Failure: the mode or the application cannot be used.
        """
        if self.loaded:
            return
        loader.set_variables(self.settings)
        loader.extend_path(self.settings)
        mode.prepare(self.mode, self.settings)
        self.application = plugin_hooks.load_application(
            self.hooks, self.settings, self.routes, self.application
        )
        # Compiling what has no bytecode yet leaves holes of a megabyte.
        trim_memory()
        if self.imports is not None:
            self.imports.report()
        self.loaded = True

    def serve(
        self,
        ready: Callable[[], object],
        signals: StopSignals,
        context: WorkerContext | None = None,
    ) -> bool:
        """Serve in this process, which has loaded the application, until a stop signal.

        Returns:
            Whether the main process has stopped it to promote it.
        """
        assert self.application is not None
        listeners = self.listeners
        if context is not None:
            listeners = sockets.listeners_of(listeners, context.index)
            close_others(listeners)
        application, arguments = plugin_hooks.serving(
            self.hooks, self.settings, self.application, self.transport, listeners
        )
        worker = Worker(
            application,
            self.settings,
            listeners,
            context,
            routes=self.routes.table(self.own_paths),
            streamed_bodies=self.routes.streamed_bodies,
            appended=self.appended,
            takes_times=self.takes_times,
            arguments=arguments,
            ready=ready,
            signals=signals,
        )
        self.mode.run(worker)
        for hooks in self.hooks:
            try:
                hooks.stop(self.settings)
            except Exception as error:
                logs.exception("the end of a plug-in failed", error)
        return worker.promoted

    @property
    def urls(self) -> list[str]:
        """The URLs of the listening sockets, without repetition."""
        urls = (url(self.settings.target, listener.url) for listener in self.listeners)
        return list(dict.fromkeys(urls))

    def announce(self, workers: int) -> None:
        """Print that all workers accept connections."""
        how = f"{self.settings.mode}, {workers} {'worker' if workers == 1 else 'workers'}"
        name = f": {self.settings.service}" if self.settings.service else ""
        # In one write: an old main process may be writing there as well.
        text = f"poorhttp {VERSION} listening on {', '.join(self.urls)} ({how}){name}\n"
        text += f"poorhttp {self.notice}\n" if self.notice else ""
        # The disk may be full, which must not keep systemd from being notified.
        with suppress(OSError):
            sys.stderr.write(text)
            sys.stderr.flush()

    def close(self) -> None:
        for listener in self.listeners:
            listener.close()
