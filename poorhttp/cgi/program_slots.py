"""Who waits for programs, and how many of them run at the same time."""

from __future__ import annotations

import os
from _queue import Empty, SimpleQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")

#: Seconds after which who waits for a place looks whether its client is still there.
SLICE = 0.1

#: Those of this process and of those that have forked it, by process, places and mode.
CREWS: dict[tuple[int, int, bool], Threads] = {}


def crew_of(most: int, *, in_greenlets: bool) -> Threads:
    """Return those of this process who wait for as many programs: they are the same for all."""
    key = (os.getpid(), most, in_greenlets)
    crew = CREWS.get(key)
    if crew is None:
        # Another thread may be as far; then one of both is taken by both.
        crew = CREWS.setdefault(key, (Greenlets if in_greenlets else Threads)(most))
    return crew


class Threads:
    """Waits for programs in the thread that asks for it."""

    def __init__(self, most: int) -> None:
        # Written in C, as a semaphore of threads is not: there and back costs a tenth.
        self.free: SimpleQueue[None] = SimpleQueue()
        for _ in range(most):
            self.free.put(None)

    def take_place(self, look: Callable[[], None]) -> Callable[[], None]:
        """Wait until one more program may run; return how to give its place back, once."""
        if not self.take(0):
            while not self.take(SLICE):
                look()
            try:
                # The client may have left since the last look.
                look()
            except BaseException:
                self.release()
                raise
        taken = [None]

        def give_back() -> None:
            try:
                taken.pop()
            except IndexError:
                return
            self.release()

        return give_back

    def take(self, patience: float) -> bool:
        """Take a place; `False` if there was none for so many seconds."""
        try:
            self.free.get(timeout=patience)
        except Empty:
            return False
        return True

    def release(self) -> None:
        """Give back a place; called from any thread."""
        self.free.put(None)

    def wait(self, deed: Callable[..., T], *arguments: Any) -> T:
        """Do something that takes its time."""
        return deed(*arguments)


class Greenlets(Threads):
    """Waits for programs in threads of its own, while the hub goes on.

    The hub's own threads look up names for everybody, and must not all wait for programs.
    """

    def __init__(self, most: int) -> None:
        from gevent import get_hub
        from gevent.lock import BoundedSemaphore
        from gevent.threadpool import ThreadPool

        # Of greenlets: the queue would make the whole hub wait.
        self.places = BoundedSemaphore(most)
        self.hub = get_hub()
        # Each program that runs has one of the places, and is waited for by one thread.
        self.pool = ThreadPool(most)

    def take(self, patience: float) -> bool:
        """Take a place; `False` if there was none for so many seconds."""
        return self.places.acquire(blocking=patience > 0, timeout=patience or None)

    def release(self) -> None:
        """Give back a place, in the hub."""
        self.hub.loop.run_callback_threadsafe(self.places.release)

    def wait(self, deed: Callable[..., T], *arguments: Any) -> T:
        """Do something in another thread."""
        result, error = self.pool.apply(attempt, (deed, arguments))
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]


def attempt(deed: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    """Do something; return what came of it. gevent would log an exception on its own."""
    try:
        return deed(*arguments), None
    except Exception as error:
        return None, error
