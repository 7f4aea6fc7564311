"""Logs where an application keeps the event loop from all other requests (`slow_request`)."""

from __future__ import annotations

import sys
import traceback
from threading import Event

from poorhttp import logs
from poorhttp.logs.frames import with_sources
from poorhttp.plugins.asgi.exchange import HttpExchange
from poorhttp.process import threads
from poorhttp.process.unpatched import get_ident
from poorhttp.worker.timeouts import location_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from types import FrameType


class LoopWatch:
    """A thread that has the event loop answer from time to time, and logs when it does not."""

    def __init__(self, loop: AbstractEventLoop, seconds: float) -> None:
        """Start the thread; `seconds` is how long the loop may be blocked."""
        self._loop = loop
        self._loop_thread = get_ident()
        self._seconds = seconds
        self._stops = Event()
        threads.create(self._run, "poorhttp-watch", daemon=True).start()

    def stop(self) -> None:
        """Have the thread end."""
        self._stops.set()

    def _run(self) -> None:
        while not self._stops.wait(self._seconds / 2):
            answered = Event()
            try:
                self._loop.call_soon_threadsafe(answered.set)
            except RuntimeError:
                # The loop is closed.
                return
            if not answered.wait(self._seconds) and not self._stops.is_set():
                self._report()
                # Once for each time that it is blocked.
                while not (answered.wait(self._seconds) or self._stops.is_set()):
                    pass

    def _report(self) -> None:
        frame = sys._current_frames().get(self._loop_thread)
        exchange = computing(frame)
        stack = with_sources(lambda: traceback.extract_stack(frame))
        where = location_of(stack)
        text = f"for {self._seconds:g} s (slow_request) the event loop is blocked in {where}"
        name = None if exchange is None else exchange.request.name
        trace = "".join(stack.format())
        logs.write("warning", f"{name}: {text}" if name else text, name, traceback=trace)


def computing(frame: FrameType | None) -> HttpExchange | None:
    """Return the exchange that runs in a stack; `None`: none, or a task that it has made."""
    while frame is not None:
        if frame.f_code is HttpExchange.run.__code__:
            found: HttpExchange = frame.f_locals["self"]
            return found
        frame = frame.f_back
    return None
