"""How a process that serves is told to stop."""

from __future__ import annotations

import os

from poorhttp import logs
from poorhttp.errors import Stopped
from poorhttp.process.signals import MAIN_PROCESS_SIGNALS, STOP_SIGNALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from types import FrameType, TracebackType
    from typing import Any

    from typing_extensions import Self

    from poorhttp._core import Reactor
    from poorhttp.config.settings import Settings
else:
    # Without its enumerations, which every process would pay for (docs/design.md).
    import _signal as signal

#: The modules whose `serve` calls applications.
SERVE_MODULES = ("poorhttp.worker.wsgi", "poorhttp.worker.tcp")

#: Seconds beyond `graceful_timeout` before a process with a stuck request ends.
GRACE = 0.5


class StopSignals:
    """Signal handlers for as long as this context lasts; in the main thread only.

    TERM stops gracefully, INT and QUIT quickly. A second one ends a process that nobody supervises
    at once, and so does a request that is still in hand when its time is over. With `drain_delay`
    such a process goes on serving for so long after TERM, or until it is told again. USR1 reopens
    the logs.
    """

    def __init__(
        self, timeout: float = 0.0, *, supervised: bool = False, settings: Settings | None = None
    ) -> None:
        """Take the seconds that requests in hand may take; a supervisor counts them itself.

        `settings`: with which the logs are opened.
        """
        self.settings = settings
        #: The logs were reopened before there was a reactor.
        self.reopened = False
        self.timeout = timeout
        self.supervised = supervised
        self.reactor: Reactor | None = None
        #: Seconds between TERM and the stop.
        self.delay = 0.0 if supervised or settings is None else settings.drain_delay
        #: Called when we are told to stop, before that begins.
        self.before_stop: Callable[[], object] = lambda: None
        self.draining = False
        self.stopping = False
        #: Before there was a reactor: what was raised then may have been lost.
        self.stopped_early = False
        self.previous_handlers: dict[int, Any] = {}
        self.wakeup_fd = -1
        self.cleanups: list[Callable[[], object]] = []
        #: Calls what may have to wait, which a handler cannot where it interrupts a loop of events.
        self.call_soon: Callable[[Callable[[], object]], object] = lambda function: function()

    def __enter__(self) -> Self:
        for number in (*STOP_SIGNALS, signal.SIGALRM):
            handler = self.on_alarm if number == signal.SIGALRM else self.stop
            self.previous_handlers[number] = signal.signal(number, handler)
        self.previous_handlers[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, self.reopen)
        if self.supervised:
            for number in MAIN_PROCESS_SIGNALS:
                self.previous_handlers[number] = signal.signal(number, signal.SIG_IGN)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if self.reactor is not None:
            signal.set_wakeup_fd(self.wakeup_fd)
            self.reactor = None
        for cleanup in self.cleanups:
            cleanup()
        for number, handler in self.previous_handlers.items():
            signal.signal(number, handler)

    def add_handler(self, number: int, handler: Any) -> None:
        """Handle one more signal for as long as this context lasts."""
        self.previous_handlers[number] = signal.signal(number, handler)

    def add_cleanup(self, cleanup: Callable[[], object]) -> None:
        """Have something called when this context ends."""
        self.cleanups.append(cleanup)

    def attach(self, reactor: Reactor) -> None:
        """Stop this reactor from now on.

        Raises:
            Stopped: it is too late to begin. An exception that is raised by a handler while Python
                runs a callback of its own (imports have some) ends there.
        """
        if self.stopped_early:
            raise Stopped
        self.reactor = reactor
        # A handler is run by the main thread between two bytecodes: the poll must end for it.
        self.wakeup_fd = signal.set_wakeup_fd(reactor.wakeup_fd, warn_on_full_buffer=False)
        if self.reopened and self.settings is not None:
            logs.reopen(self.settings, reactor)

    def reopen(self, number: int, frame: FrameType | None) -> None:
        """Be told that the files of the logs have been renamed."""
        self.reopened = True
        settings, reactor = self.settings, self.reactor
        if settings is not None:
            self.call_soon(lambda: logs.reopen(settings, reactor))

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Be told to stop."""
        if self.reactor is None:
            self.stopped_early = True
            _silence_lost_stop()
            raise Stopped
        if not self.supervised:
            if self.stopping:
                self.exit_now(number, frame)
            if not self.draining:
                self.before_stop()
                if self.delay and number == signal.SIGTERM:
                    self.drain(self.reactor)
                    return
            signal.setitimer(signal.ITIMER_REAL, self.timeout + GRACE)
        self.stopping = True
        self.reactor.stop(graceful=number == signal.SIGTERM)

    def drain(self, reactor: Reactor) -> None:
        """Have nobody new come, and stop some time later."""
        self.draining = True
        logs.write("info", f"not ready any more, and the stop begins in {self.delay:g} s (TERM)")
        reactor.drain()
        signal.setitimer(signal.ITIMER_REAL, self.delay)

    def on_alarm(self, number: int, frame: FrameType | None) -> None:
        """Go on from draining to stopping, and from that to the end."""
        if self.stopping:
            self.exit_now(number, frame)
        else:
            self.stop(signal.SIGTERM, frame)

    def exit_now(self, number: int, frame: FrameType | None) -> None:
        """End, whatever is still in hand: it was asked for, so the exit code is 0."""
        try:
            logs.write("warning", f"stopped with requests still in hand: {requests_in_flight()}")
            if self.reactor is not None:
                self.reactor.flush_log()
            logs.close()
        finally:
            os._exit(0)


def _silence_lost_stop() -> None:
    """Have Python not report a `Stopped` that it cannot pass on; `attach` raises it again."""
    import sys

    before = sys.unraisablehook

    def report(lost: sys.UnraisableHookArgs) -> None:
        if lost.exc_type is not Stopped:
            before(lost)

    sys.unraisablehook = report


def is_serve_loop(frame: FrameType) -> bool:
    """Whether it is that of the loop that serves."""
    return frame.f_code.co_name == "serve" and frame.f_globals.get("__name__") in SERVE_MODULES


def requests_in_flight() -> str:
    """Name the requests that threads and greenlets of this process work on, the oldest first."""
    import gc
    import sys

    frames: list[FrameType | None] = list(sys._current_frames().values())
    if "greenlet" in sys.modules:
        # Those that wait have a frame of their own. Of an object that stands for another one, even
        # `isinstance` would run code.
        kind = sys.modules["greenlet"].greenlet
        frames += [each.gr_frame for each in gc.get_objects() if issubclass(type(each), kind)]
    found: dict[int, str] = {}
    for frame in frames:
        outer = frame
        while outer is not None:
            if is_serve_loop(outer):
                request = outer.f_locals.get("request") or outer.f_locals.get("connection")
                if request is not None:
                    found[request.number] = request.line
            outer = outer.f_back
    named = [f"request {number} {line}".rstrip() for number, line in sorted(found.items())]
    return ", ".join(named) or "none of them is known"
