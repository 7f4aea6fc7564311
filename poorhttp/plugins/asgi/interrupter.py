"""Ends tasks whose requests exceed `request_timeout`, and logs where they wait.

A task that waits is cancelled. One that computes keeps the event loop from all others: it is
interrupted as in mode `single`, and its stack is logged.
"""

from __future__ import annotations

import sys
import traceback

from poorhttp import logs
from poorhttp.logs.frames import with_sources
from poorhttp.plugins.asgi.blocked_loop import computing
from poorhttp.plugins.asgi.exchange import HttpExchange
from poorhttp.process.unpatched import get_ident
from poorhttp.worker.timeouts import ThreadInterrupter, location_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Iterator
    from types import FrameType
    from typing import Any

    from poorhttp._core import RequestName
    from poorhttp.worker.stop_signals import StopSignals
    from poorhttp.worker.timeouts import Interruption


class TaskInterrupter(ThreadInterrupter):
    """Interrupts applications that run in tasks of the event loop, and those in threads.

    Attributes:
        beginning: the exchange that the event loop is about to run.
    """

    beginning: HttpExchange | None = None

    def __init__(self, signals: StopSignals | None, loop: AbstractEventLoop) -> None:
        super().__init__(signals)
        self.loop = loop
        self.loop_thread = get_ident()
        self.current = self.runner

    def runner(self) -> Any:
        """Return what runs in this thread: an exchange in that of the event loop."""
        ident = get_ident()
        if ident != self.loop_thread:
            return ident
        return self.beginning or computing(sys._getframe())

    def report(self, request: RequestName, age: float, runner: Any) -> Interruption:
        """Log where a request is, and return how to end it."""
        if not isinstance(runner, HttpExchange):
            return super().report(request, age, runner)
        if computing(sys._current_frames().get(self.loop_thread)) is runner:
            return super().report(request, age, self.loop_thread)
        frames = [(frame, frame.f_lineno) for frame in frames_of(runner.task.get_coro())]
        summary = with_sources(lambda: traceback.StackSummary.extract(iter(frames)))
        where = location_of(summary) if summary else "an unknown place"
        text = f"{request}: after {age:.3f} s (request_timeout) the application waits in {where}"
        logs.write("error", text, request, traceback="".join(summary.format()))
        runner.overdue = True
        return self.loop.call_soon_threadsafe, (runner.task.cancel,), None


def frames_of(coroutine: Any) -> Iterator[FrameType]:
    """Return the frames of a coroutine that waits, the outermost first."""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if frame is not None:
            yield frame
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
