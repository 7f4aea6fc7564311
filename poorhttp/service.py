"""What is to be served, and where."""

from __future__ import annotations

import sys

from poorhttp import __version__, config, log, modes, sockets, targets
from poorhttp.sockets import listeners_of
from poorhttp.worker import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from _typeshed.wsgi import WSGIApplication

    from poorhttp.options import Settings
    from poorhttp.post import Post
    from poorhttp.listener import Listener
    from poorhttp.stopping import StopSignals


class Service:
    """One reading of the configuration: everything that is settled before a worker is forked.

    Attributes:
        listeners: its listening sockets.
        application: once it is loaded.
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
            poorhttp.errors.Failure: the mode or an address cannot be used.
        """
        self.settings = settings
        self.application = application
        self.mode = modes.load(settings)
        self.listeners = sockets.open_listeners(settings, have)

    def load(self) -> None:
        """Get this process, which shall serve or be forked, ready, and load the application.

        Raises:
            poorhttp.errors.Failure: the mode or the application cannot be used.
        """
        config.extend_path(self.settings)
        modes.prepare(self.mode, self.settings)
        self.application = self.application or targets.load(self.settings.target)

    def serve(
        self, ready: Callable[[], None], signals: StopSignals, post: Post | None = None
    ) -> None:
        """Serve in this process, which has loaded the application, until told to stop."""
        assert self.application is not None
        listeners = self.listeners if post is None else listeners_of(self.listeners, post.seat)
        for listener in self.listeners:
            if listener not in listeners:
                listener.release()
        worker = Worker(
            self.application, self.settings, listeners, post, ready=ready, signals=signals
        )
        self.mode.run(worker)

    def announce(self, workers: int) -> None:
        """Tell the world that every worker accepts."""
        where = ", ".join(sockets.urls(self.listeners))
        how = f"{self.settings.mode}, {workers} {'worker' if workers == 1 else 'workers'}"
        name = f": {self.settings.service}" if self.settings.service else ""
        print(
            f"poorhttp {__version__} listening on {where} ({how}){name}",
            file=sys.stderr,
            flush=True,
        )

    def close(self) -> None:
        """Close the listening sockets."""
        for listener in self.listeners:
            listener.close()
