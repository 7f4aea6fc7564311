"""Interrupts applications whose requests exceed `request_timeout`, and logs where they are.

Imported only where `request_timeout` is set. `core/python/src/interrupter.rs` decides when to
interrupt, and makes sure that only the late request is hit;
`core/reactor/src/request_timeout.rs` answers the client.
"""

from __future__ import annotations

# Imported in advance: while another thread computes, each file of an import would wait for the GIL.
import ctypes
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType

from poorhttp import logs
from poorhttp._core import Reactor, RequestName
from poorhttp.errors import RequestTimeout
from poorhttp.logs.frames import SERVER_FOLDER, with_sources
from poorhttp.process.signals import Disposition, signal
from poorhttp.process.unpatched import get_ident
from poorhttp.worker.stop_signals import StopSignals, is_serve_loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from gevent.hub import Hub
    from greenlet import greenlet

    #: A function, its arguments, and the arguments that revoke it.
    Interruption: TypeAlias = tuple[Callable[..., object], tuple[Any, ...], tuple[Any, ...] | None]

#: Makes the main thread raise. A real-time signal, which applications rarely use.
INTERRUPT_SIGNAL = signal.SIGRTMAX

#: Dumps all tracebacks; sent by the core if no thread can run Python. Ignored by default.
DUMP_SIGNAL = signal.SIGURG


class ThreadInterrupter:
    """Interrupts applications that run in threads.

    Attributes:
        main: the main thread, if it handles signals; otherwise 0.
        dumps: `DUMP_SIGNAL` is handled.
    """

    #: Returns the thread or greenlet that runs, which `report` gets later.
    current: Callable[[], Any] = staticmethod(get_ident)
    reactor: Reactor | None = None  # of the requests

    def __init__(self, signals: StopSignals | None) -> None:
        """Install handlers if the process belongs to the server; then this is its main thread."""
        self.main = get_ident() if signals is not None else 0
        self.signals = signals
        self.dumps = signals is not None and self._handle_dump(signals)
        if signals is not None:
            signals.add_handler(INTERRUPT_SIGNAL, self.on_interrupt)

    def _handle_dump(self, signals: StopSignals) -> bool:
        import faulthandler

        for stream in (logs.error_log.stream, sys.stderr):
            # The log may be no file, and standard error may be missing or replaced.
            with suppress(Exception):
                faulthandler.register(DUMP_SIGNAL, stream, all_threads=True)
                signals.cleanups.append(lambda: faulthandler.unregister(DUMP_SIGNAL))
                return True
        return False

    def on_interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handle `INTERRUPT_SIGNAL`, which may arrive when another request runs, or none."""
        if self.reactor is not None and self.reactor.take_timeout(self.current()):
            raise RequestTimeout

    def reaches_main(self) -> bool:
        """Whether `INTERRUPT_SIGNAL` reaches our handler, which the application may have changed.

        The default action would end the process.
        """
        if self.signals is None or self.signals.is_replaced(INTERRUPT_SIGNAL):
            return False
        # The file of a process has the masks of its main thread.
        return not Disposition("self").withheld(INTERRUPT_SIGNAL)

    def report(self, request: RequestName, age: float, runner: Any) -> Interruption:
        """Log where all threads are, and return how to interrupt `runner`.

        The core calls the function with no bytecode in between, so that no other request is hit.
        """
        ours = sys._getframe()
        frames = sys._current_frames()
        stacks = {ident: stack for ident, stack in frames.items() if stack is not ours}
        title, stack = self.take_stack(runner, stacks)
        others = [(self.thread_name(ident), other) for ident, other in stacks.items()]
        write_report(request, age, [(f"{title}, which runs it", stack), *others])
        return self.interruption(runner)

    def take_stack(self, runner: Any, stacks: dict[int, FrameType]) -> tuple[str, FrameType | None]:
        """Remove the stack that runs the request from `stacks`; return its title and the stack."""
        return self.thread_name(runner), stacks.pop(runner, None)

    def thread_name(self, ident: int) -> str:
        # Not imported here: `threading` takes the thread that imports it for the main thread.
        threading = sys.modules.get("threading")
        thread = threading and threading._active.get(ident)
        name = thread.name if thread else "the main one" if ident == self.main else ""
        return f"Thread {ident:#x}" + (f" ({name})" if name else "")

    def interruption(self, runner: Any) -> Interruption:
        if runner == self.main and self.reaches_main():
            # A signal also interrupts system calls.
            return signal.pthread_kill, (runner, INTERRUPT_SIGNAL), None
        return interruption_of_thread(runner)


def interruption_of_thread(ident: int) -> Interruption:
    """Return how to raise RequestTimeout in a thread as soon as it runs Python."""
    function = ctypes.pythonapi.PyThreadState_SetAsyncExc
    function.argtypes = (ctypes.c_ulong, ctypes.c_void_p)
    return function, (ident, id(RequestTimeout)), (ident, None)


class GreenletInterrupter(ThreadInterrupter):
    """Interrupts applications that run in greenlets of gevent, all in the main thread."""

    def __init__(self, signals: StopSignals | None, hub: Hub) -> None:
        from gevent import getcurrent

        # The function itself, not a method.
        self.current = getcurrent
        self.hub = hub
        super().__init__(signals)

    def take_stack(self, runner: Any, stacks: dict[int, FrameType]) -> tuple[str, FrameType | None]:
        """Return the stack of the greenlet, which has a frame of its own only while it waits."""
        if runner.gr_frame is not None:
            return f"Greenlet {id(runner):#x}", runner.gr_frame
        return f"Greenlet {id(runner):#x} (computing)", stacks.pop(self.main, None)

    def interruption(self, runner: Any) -> Interruption:
        return self.interrupt, (runner,), None

    def interrupt(self, runner: greenlet) -> None:
        """Interrupt a greenlet: by a signal if it computes, from the hub if it waits."""
        if self.main and self.reaches_main():
            signal.pthread_kill(self.main, INTERRUPT_SIGNAL)
        elif self.main and runner.gr_frame is None:
            # It computes, and the main thread waits for the GIL in its frame.
            function, arguments, _ = interruption_of_thread(self.main)
            function(*arguments)
        self.hub.loop.run_callback_threadsafe(self.throw, runner)

    def throw(self, runner: greenlet) -> None:
        """Raise RequestTimeout in a greenlet; called in the hub, where no other one runs."""
        if self.reactor is not None and self.reactor.take_timeout(runner):
            runner.throw(RequestTimeout)


def write_report(
    request: RequestName, age: float, stacks: list[tuple[str, FrameType | None]]
) -> None:
    """Log a request that takes too long; the first stack is that of the thread that runs it."""
    # Take all positions at once; source lines are looked up later.
    extracted, idle = [], []
    for number, (title, stack) in enumerate(stacks):
        if stack is None:
            continue
        if number and is_idle(stack):
            idle.append(title)
        else:
            summary = traceback.StackSummary.extract(frames_of(stack), lookup_lines=False)
            extracted.append((title, summary))
    where = location_of(extracted[0][1]) if stacks[0][1] is not None else "an unknown place"
    message = f"{request}: after {age:.3f} s (request_timeout) the application is in {where}"
    text = []
    # Threads that wait for the same lock have the same stack, which is printed once.
    titles: dict[tuple[str, ...], list[str]] = {}
    for title, summary in extracted:
        titles.setdefault(tuple(with_sources(summary.format)), []).append(title)
    for lines, same in titles.items():
        text += [f"{', '.join(same)} (most recent call last):\n", *lines]
    if idle:
        text.append(f"Idle: {', '.join(idle)}\n")
    logs.write("error", message, request, traceback="".join(text))


def is_idle(frame: FrameType) -> bool:
    """Tell whether a thread waits in the server itself, and runs no application."""
    if is_serve_loop(frame):
        return True
    if not frame.f_code.co_filename.startswith(SERVER_FOLDER):
        return False
    outer = frame.f_back
    while outer is not None and not is_serve_loop(outer):
        outer = outer.f_back
    return outer is None


def frames_of(frame: FrameType | None) -> Iterable[tuple[FrameType, int]]:
    """Return the frames of a stack and their lines, the outermost first.

    Frames outside of the serve loop are the same for all requests, and left out.
    """
    frames = []
    while frame is not None:
        frames.append((frame, frame.f_lineno))
        frame = None if is_serve_loop(frame) else frame.f_back
    return reversed(frames)


def location_of(stack: Iterable[traceback.FrameSummary]) -> str:
    """Return file, line and function where the application is.

    If it waits in a library, the place where it has called the library.
    """

    def is_installed(at: traceback.FrameSummary) -> bool:
        return "/site-packages/" in at.filename or "/dist-packages/" in at.filename

    standard = os.path.dirname(os.__file__), "<"
    locations = list(reversed([*stack]))
    others = [at for at in locations if not at.filename.startswith(SERVER_FOLDER)]
    others = [at for at in others if is_installed(at) or not at.filename.startswith(standard)]
    theirs = [at for at in others if not is_installed(at)]
    at = (theirs or others or locations)[0]
    return f"{at.filename}:{at.lineno} in {at.name}"
