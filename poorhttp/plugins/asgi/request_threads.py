"""Threads in which mode `asyncio` runs requests of WSGI applications, and raw TCP connections."""

from __future__ import annotations

# Not those of `queue`, which gevent replaces.
from _queue import Empty, SimpleQueue
from contextlib import suppress

from poorhttp.process import threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from poorhttp.plugins.asgi.native import Request


class RequestThreads:
    """Threads of the operating system, whatever the application replaces; up to `most`.

    Attributes:
        unfinished: requests that run, or wait for a thread.
    """

    def __init__(self, most: int, serve: Callable[[Request], object]) -> None:
        self.unfinished: set[Request] = set()
        self._waiting: SimpleQueue[Request | None] = SimpleQueue()
        self._most = most
        self._serve = serve
        self._count = 0

    def begin(self, request: Request) -> None:
        """Have a thread run a request; called by one thread only."""
        self.unfinished.add(request)
        self._waiting.put(request)
        if self._count < min(len(self.unfinished), self._most):
            threads.create(self._run, f"poorhttp_{self._count}").start()
            self._count += 1

    def stop(self) -> None:
        """End the threads; requests that wait for one are given up."""
        with suppress(Empty):
            while (request := self._waiting.get_nowait()) is not None:
                self.unfinished.discard(request)
        for _ in range(self._count):
            self._waiting.put(None)

    def _run(self) -> None:
        while (request := self._waiting.get()) is not None:
            try:
                self._serve(request)
            finally:
                self.unfinished.discard(request)
            del request
