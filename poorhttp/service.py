"""What is to be served, and where."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from poorhttp import __version__, config, log, modes, sockets, targets
from poorhttp.identity import Identity
from poorhttp.listener import Listener
from poorhttp.routes import Routes
from poorhttp.worker import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from _typeshed.wsgi import WSGIApplication

    from poorhttp.options import Settings
    from poorhttp.post import Post
    from poorhttp.stopping import StopSignals


class Service:
    """One reading of the configuration: everything that is settled before a worker is forked.

    Attributes:
        listeners: its listening sockets.
        folder: where its paths count from.
        routes: to applications and folders.
        application: once it is loaded.
        identity: whom its workers become.
        loaded: the application is, in this process or in the one that has forked it.
        begun: the server as a whole serves, so what goes wrong now belongs into the error log.
    """

    begun = False

    def __init__(
        self,
        settings: Settings,
        application: WSGIApplication | None = None,
        have: Sequence[Listener] = (),
    ) -> None:
        """Take what is to be served, and listeners that are open already.

        Raises:
            poorhttp.errors.Failure: the mode, an address or a folder cannot be used.
        """
        self.settings = settings
        self.folder = os.getcwd()
        self.routes = Routes(settings, application)
        self.application = self.routes.application
        self.loaded = False
        self.mode = modes.load(settings)
        self.identity = Identity.of(settings)
        log.make_access_log(settings, self.identity.owner)
        self.listeners = sockets.open_listeners(settings, have)

    def enter(self) -> None:
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
        config.extend_path(self.settings)
        modes.prepare(self.mode, self.settings)
        self.application = self.application or self.routes.load()
        self.loaded = True

    def serve(
        self, ready: Callable[[], None], signals: StopSignals, post: Post | None = None
    ) -> None:
        """Serve in this process, which has loaded the application, until told to stop."""
        assert self.application is not None
        listeners = self.listeners
        if post is not None:
            listeners = sockets.listeners_of(listeners, post.seat)
            Listener.leave(listeners)
        worker = Worker(
            self.application,
            self.settings,
            listeners,
            post,
            routes=self.routes.table,
            ready=ready,
            signals=signals,
        )
        self.mode.run(worker)

    def announce(self, workers: int) -> None:
        """Tell the world that every worker accepts."""
        urls = [targets.url(self.settings.target, listener.url) for listener in self.listeners]
        where = ", ".join(dict.fromkeys(urls))
        how = f"{self.settings.mode}, {workers} {'worker' if workers == 1 else 'workers'}"
        name = f": {self.settings.service}" if self.settings.service else ""
        # In one piece: a predecessor may be writing there as well.
        sys.stderr.write(f"poorhttp {__version__} listening on {where} ({how}){name}\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Close the listening sockets."""
        for listener in self.listeners:
            listener.close()
