"""What is to be served, and where."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from poorhttp import logs, modes
from poorhttp.config import loader
from poorhttp.config.address import url
from poorhttp.config.options.development import check
from poorhttp.config.version import VERSION
from poorhttp.net import sockets
from poorhttp.net.listener import Listener
from poorhttp.process.privileges import Privileges
from poorhttp.targets.routes import Routes
from poorhttp.worker import development
from poorhttp.worker.worker import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from _typeshed.wsgi import WSGIApplication

    from poorhttp.config.settings import Settings
    from poorhttp.process.worker_context import WorkerContext
    from poorhttp.worker.stop_signals import StopSignals


class Service:
    """One reading of the configuration: everything that is settled before a worker is forked.

    Attributes:
        listeners: its listening sockets.
        folder: where its paths count from.
        routes: to applications and folders.
        application: once it is loaded.
        privileges: whom its workers become.
        loaded: the application is, in this process or in the one that has forked it.
        notice: what else a person should know when it begins to serve.
        live: what is put behind published pages, before and behind the path below which the client
            knows us; None: nothing.
        serving: the server as a whole serves, so what goes wrong now belongs into the error log.
        start_errors_muted: errors at the start of a worker are not logged: there were many of them.
    """

    notice = ""
    live: tuple[str, str] | None = None
    serving = False
    start_errors_muted = False

    def __init__(
        self,
        settings: Settings,
        application: WSGIApplication | None = None,
        already_open: Sequence[Listener] = (),
    ) -> None:
        """Take what is to be served, and listeners that are open already.

        Raises:
            poorhttp.errors.Failure: the mode, an address or a folder cannot be used.
        """
        hint = check(settings)
        self.settings = settings
        self.folder = os.getcwd()
        self.routes = Routes(settings, application)
        self.application = self.routes.application
        self.loaded = False
        self.mode = modes.load(settings)
        self.privileges = Privileges.of(settings)
        logs.make_access_log(settings, self.privileges.owner)
        self.listeners = sockets.open_listeners(
            settings, already_open, approve=development.listener_check(settings)
        )
        if settings.debug != "off" or settings.profile:
            # Here, so that all that is forked from this process has the same PIN.
            self.notice = hint or development.server().pin_announcement()
        elif settings.access_log is None and os.isatty(2):
            self.notice = "logs no requests here; --access-log - shows them"

    def change_folder(self) -> None:
        """Go to its folder: with a reload under way the main process is in that of the new version.

        If it is gone we stay where we are; what is not found there will be told.
        """
        with suppress(OSError):
            os.chdir(self.folder)

    def load(self) -> None:
        """Get this process, which shall serve or be forked, ready, and load the application.

        Once is enough: what a template has loaded its workers have.

        Raises:
            poorhttp.errors.Failure: the mode or the application cannot be used.
        """
        if self.loaded:
            return
        loader.extend_path(self.settings)
        modes.prepare(self.mode, self.settings)
        if self.settings.debug == "off":
            self.application = self.application or self.routes.load()
        else:
            dev = development.server()
            dev.prepare(self.settings)
            application = self.application or self.routes.load(dev.with_static_files)
            self.application = dev.with_error_pages(application, self.settings)
        self.loaded = True

    def serve(
        self, ready: Callable[[], None], signals: StopSignals, context: WorkerContext | None = None
    ) -> None:
        """Serve in this process, which has loaded the application, until told to stop."""
        assert self.application is not None
        listeners = self.listeners
        if context is not None:
            listeners = sockets.listeners_of(listeners, context.index)
            Listener.close_others(listeners)
        worker = Worker(
            self.application,
            self.settings,
            listeners,
            context,
            routes=self.routes.table,
            live=self.live,
            ready=ready,
            signals=signals,
        )
        self.mode.run(worker)

    def drop_application(self) -> None:
        """Give up the application in a process that ends: what is on the stack keeps it alive."""
        self.application = None
        self.__dict__.pop("routes", None)

    @property
    def urls(self) -> list[str]:
        """Where it is reached, for people."""
        urls = [url(self.settings.target, listener.url) for listener in self.listeners]
        return list(dict.fromkeys(urls))

    def announce(self, workers: int) -> None:
        """Tell the world that every worker accepts."""
        where = ", ".join(self.urls)
        how = f"{self.settings.mode}, {workers} {'worker' if workers == 1 else 'workers'}"
        name = f": {self.settings.service}" if self.settings.service else ""
        # In one piece: a predecessor may be writing there as well.
        notice = f"poorhttp {self.notice}\n" if self.notice else ""
        text = f"poorhttp {VERSION} listening on {where} ({how}){name}\n{notice}"
        # Its disk may be full, and then others are still to be told.
        with suppress(OSError):
            sys.stderr.write(text)
            sys.stderr.flush()

    def close(self) -> None:
        """Close the listening sockets."""
        for listener in self.listeners:
            listener.close()
