"""A process that serves: application, listeners, and how it is told to stop."""

from __future__ import annotations

import os
import signal

from poorhttp import __version__, log, wsgi
from poorhttp._core import Reactor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from _typeshed.wsgi import WSGIApplication

    from poorhttp._core import Journal
    from poorhttp.options import Settings
    from poorhttp.sockets import Listener

#: Seconds beyond `graceful_timeout` before a process with a stuck request ends itself.
GRACE = 0.5


class Worker:
    """What a mode is given.

    Attributes:
        application: is called for each request.
        settings: of this service.
        siblings: if other processes serve the same sockets, where all count their connections (a
            descriptor), and the place of this one there.
        ready: to be called when requests can be served.
    """

    def __init__(
        self,
        application: WSGIApplication,
        settings: Settings,
        listeners: Sequence[Listener],
        journal: Journal,
        *,
        siblings: tuple[int, int] | None = None,
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        self.application = application
        self.settings = settings
        self.siblings = siblings
        self.ready = ready
        self._listeners = listeners
        self._journal = journal

    def reactor(
        self,
        *,
        multithread: bool = False,
        wait_writable: Callable[[int], object] | None = None,
        watched: bool = False,
    ) -> Reactor:
        """Make the reactor of this process; see `poorhttp._core.Reactor`.

        Raises:
            ConfigError: a log file cannot be opened.
        """
        bases = [
            (
                listener.fileno(),
                wsgi.base_environ(
                    listener.server,
                    multithread=multithread,
                    multiprocess=self.siblings is not None,
                    software=f"poorhttp/{__version__}",
                ),
            )
            for listener in self._listeners
        ]
        access_log = log.open_access_log(self.settings)
        try:
            return Reactor(
                bases,
                self.settings,
                self._journal,
                access_log=access_log,
                shares=self.siblings,
                wait_writable=wait_writable,
                watched=watched,
            )
        finally:
            if access_log is not None and access_log > 2:
                os.close(access_log)

    def stop_on_signals(self, reactor: Reactor) -> None:
        """Let TERM stop this process gracefully, INT and QUIT quickly, and a second one at once.

        In the main thread only.
        """

        def stop(number: int, frame: FrameType | None) -> None:
            reactor.stop(graceful=number == signal.SIGTERM)
            for name in (signal.SIGINT, signal.SIGQUIT):
                signal.signal(name, give_up)
            signal.signal(signal.SIGALRM, give_up)
            signal.setitimer(signal.ITIMER_REAL, self.settings.graceful_timeout + GRACE)

        def give_up(number: int, frame: FrameType | None) -> None:
            log.write("error", "stopped with requests still in hand")
            reactor.flush_log()
            os._exit(1)

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, stop)
        # A handler is run by the main thread between two bytecodes: the poll must end for it.
        signal.set_wakeup_fd(reactor.wakeup_fd, warn_on_full_buffer=False)
