"""Signal handlers of a worker: graceful stop, quick stop, log rotation."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from poorhttp import logs
from poorhttp._core import Reactor, signal_action
from poorhttp.config.settings import Settings
from poorhttp.errors import Stopped
from poorhttp.process import signals, terminal_modes
from poorhttp.process.control_channel import OWN_USR1, REPLACED
from poorhttp.process.signals import MAIN_PROCESS_SIGNALS, STOP_SIGNALS, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The modules whose `serve` calls applications.
SERVE_MODULES = ("poorhttp.worker.wsgi", "poorhttp.worker.tcp")

#: Seconds after `graceful_timeout` until a process with a stuck request exits.
GRACE = 0.5


class StopSignals:
    """Installs signal handlers for the duration of a `with` block, in the main thread only.

    TERM stops gracefully, INT and QUIT quickly; USR1 reopens the logs. A standalone process exits
    at once after a second stop signal, or when requests are still in flight after the timeout. With
    `drain_delay` it goes on serving for that time after TERM, or until the next stop signal.
    """

    reactor: Reactor | None = None
    channel = -1  # the control channel to the main process; -1: there is none
    wakeup_fd = -1
    draining = False
    stopping = False
    orphaned = False  # the main process has ended, and this one has noticed
    stopped_early = False  # before the reactor was attached; the exception may be lost
    reopened = False  # USR1 came, perhaps before the reactor was attached
    #: How often the main process wanted the logs reopened, by USR1 and by a message.
    reopened_by_signal = reopened_by_message = 0

    def __init__(self, settings: Settings, *, supervised: bool = False, parent: int = 0) -> None:
        """Prepare the handlers.

        Args:
            settings: options of the logs, `graceful_timeout` and `drain_delay`.
            supervised: a main process stops this one, and enforces the timeout.
            parent: that main process; when it has ended, this process enforces the timeout itself.
        """
        self.settings = settings
        self.supervised = supervised
        self.parent = parent
        self.timeout = settings.graceful_timeout
        #: Seconds between TERM and the stop.
        self.delay = 0.0 if supervised else settings.drain_delay
        #: Called after the first stop signal, before the stop begins.
        self.before_stop: Callable[[], object] = lambda: None
        #: Calls a function that may block; gevent replaces it, whose hub must not block.
        self.call_soon: Callable[[Callable[[], object]], object] = lambda function: function()
        #: Called at the end of the `with` block.
        self.cleanups: list[Callable[[], object]] = []
        self.previous_handlers: dict[int, Any] = {}
        #: Our handlers, as Python knows them and as the kernel does.
        self.handlers: dict[int, tuple[Any, int]] = {}

    def __enter__(self) -> StopSignals:
        for number in STOP_SIGNALS:
            self.add_handler(number, self.stop)
        self.add_handler(signal.SIGALRM, self.on_alarm)
        self.add_handler(signal.SIGUSR1, self.reopen)
        for number in MAIN_PROCESS_SIGNALS if self.supervised else ():
            self.previous_handlers[number] = signals.install_ignored(number)
        return self

    def __exit__(self, *error: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if self.reactor is not None:
            signals.set_wakeup_fd(self.wakeup_fd)
            self.reactor = None
        for cleanup in self.cleanups:
            cleanup()
        for number, handler in self.previous_handlers.items():
            # None: a library had installed it, and Python cannot.
            signals.install(number, signal.SIG_DFL if handler is None else handler)

    def add_handler(self, number: int, handler: Any) -> None:
        """Install the handler of one more signal, for the duration of the `with` block."""
        self.previous_handlers.setdefault(number, signals.install(number, handler))
        self.handlers[number] = signal.getsignal(number), signal_action(number)

    def is_replaced(self, number: int) -> bool:
        """Whether the application has installed another handler, also one that Python cannot see.

        `faulthandler.register` and the event loops of libraries install such.
        """
        handler, action = self.handlers[number]
        return signal.getsignal(number) is not handler or signal_action(number) != action

    def replaced(self) -> str:
        """Return the names of the signals to stop whose handlers are not ours, with commas."""
        return ", ".join(signals.name(each) for each in STOP_SIGNALS if self.is_replaced(each))

    def note_replaced(self) -> None:
        """Tell the main process if a stop signal may be lost, or USR1 would run a library's C code.

        `faulthandler.register` installs such a handler, which reads other threads while they run.
        The signal still goes to a handler of Python, such as the application's own.
        """
        notes = REPLACED if self.replaced() else b""
        handler, action = self.handlers[signal.SIGUSR1]
        if signal.getsignal(signal.SIGUSR1) is handler and signal_action(signal.SIGUSR1) != action:
            notes += OWN_USR1
        if self.channel >= 0 and notes:
            with suppress(OSError):
                os.write(self.channel, notes)

    def attach(self, reactor: Reactor) -> None:
        """Stop this reactor when a stop signal arrives.

        Raises:
            Stopped: a stop signal came earlier. Python discards an exception that a handler raises
                while an internal callback runs (imports have some), so it is raised here again.
        """
        if self.stopped_early:
            raise Stopped
        self.reactor = reactor
        # The main thread runs handlers between two bytecodes, so the poll has to return.
        self.wakeup_fd = signals.set_wakeup_fd(reactor.wakeup_fd)
        if self.reopened:
            logs.reopen(self.settings, reactor)
        if self.supervised:
            self.note_replaced()
        elif names := self.replaced():
            then = "without a supervisor nothing else stops the server"
            logs.write("warning", f"the application has replaced the handler of {names}: {then}")

    def reopen(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Handle USR1, or the message that repeats it (0): reopen the logs, which were renamed."""
        done = max(self.reopened_by_signal, self.reopened_by_message)
        if number:
            self.reopened_by_signal += 1
        else:
            self.reopened_by_message += 1
        if max(self.reopened_by_signal, self.reopened_by_message) == done:
            return
        self.reopened = True
        reactor = self.reactor
        self.call_soon(lambda: logs.reopen(self.settings, reactor))

    def stop(self, number: int, frame: FrameType | None) -> None:
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
                    self.draining = True
                    then = f"the stop begins in {self.delay:g} s (TERM)"
                    logs.write("info", f"not ready any more, and {then}")
                    self.reactor.drain()
                    self.set_alarm(self.delay)
                    return
            logs.write("info", f"the server stops ({signals.name(number)})")
            self.set_alarm(self.timeout + GRACE)
        elif self.parent and os.getppid() != self.parent and not self.orphaned:
            # Nobody else names the requests that are cut off then. The kernel kills what does not
            # come to run Python, a moment later (`set_parent_death_signal`).
            self.orphaned = True
            logs.write(
                "error",
                "the main process has ended: requests in flight may take "
                f"{self.timeout:g} s more (graceful_timeout)",
            )
            self.set_alarm(self.timeout + GRACE)
        self.stopping = True
        self.reactor.stop(graceful=number == signal.SIGTERM)

    def set_alarm(self, seconds: float) -> None:
        """Have `on_alarm` called then, also if the application has had alarms of its own."""
        self.add_handler(signal.SIGALRM, self.on_alarm)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def on_alarm(self, number: int, frame: FrameType | None) -> None:
        """Handle ALRM: stop after the drain delay, exit after the timeout."""
        if self.stopping:
            self.exit_now(number, frame)
        else:
            self.stop(signal.SIGTERM, frame)

    def exit_now(self, number: int, frame: FrameType | None) -> None:
        """Exit with requests in flight; with code 0, because a stop was requested."""
        try:
            logs.write("warning", f"stopped with requests still in flight: {requests_in_flight()}")
            if self.reactor is not None:
                self.reactor.flush_log()
            logs.close()
        finally:
            terminal_modes.restore()
            os._exit(0)


def _silence_lost_stop() -> None:
    """Keep Python from reporting a `Stopped` that it discards; `attach` raises it again."""
    before = sys.unraisablehook

    def report(lost: sys.UnraisableHookArgs) -> None:
        if lost.exc_type is not Stopped:
            before(lost)

    sys.unraisablehook = report


def is_serve_loop(frame: FrameType) -> bool:
    return frame.f_code.co_name == "serve" and frame.f_globals.get("__name__") in SERVE_MODULES


def requests_in_flight(of: Reactor | None = None) -> str:
    """Return the numbers and lines of the requests that the application runs, the oldest first.

    Only those `of` a reactor, if that is given: a program may have several.
    """
    import gc

    frames: list[FrameType | None] = list(sys._current_frames().values())
    if "greenlet" in sys.modules:
        # Greenlets that wait have a frame of their own. `isinstance` would run code of proxies.
        kind = sys.modules["greenlet"].greenlet
        frames += [each.gr_frame for each in gc.get_objects() if issubclass(type(each), kind)]
    found: dict[int, object] = {}
    for frame in frames:
        outer = frame
        while outer is not None:
            if is_serve_loop(outer):
                local = outer.f_locals
                request = local.get("request") or local.get("connection")
                reactor = local.get("requests") or local.get("connections")
                if request is not None and of in (None, reactor):
                    found[request.number] = request.name
            outer = outer.f_back
    return ", ".join(str(found[number]) for number in sorted(found)) or "none of them is known"
