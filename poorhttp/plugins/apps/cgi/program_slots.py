"""Slots for running programs: at most `cgi_processes` at a time in each process."""

from __future__ import annotations

import os
from _queue import Empty, SimpleQueue
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")

#: Seconds between two looks, while a request waits for a slot, whether its client is still there.
CHECK_INTERVAL = 0.1

_slots: dict[tuple[int, int, bool], ProgramSlots] = {}


def slots_of_process(number: int, *, in_greenlets: bool) -> ProgramSlots:
    """Return the slots of this process, which all its folders of programs share."""
    # A forked process has slots of its own.
    key = (os.getpid(), number, in_greenlets)
    slots = _slots.get(key)
    if slots is None:
        # Two threads may come here at once; `setdefault` gives both the same slots.
        slots = _slots.setdefault(key, (GreenletSlots if in_greenlets else ProgramSlots)(number))
    return slots


class ProgramSlots:
    """Slots for threads: a request waits for a slot, and for its program, in its own thread."""

    def __init__(self, number: int) -> None:
        # Written in C, unlike `threading.Semaphore`: taking and returning a slot costs a tenth.
        self.free: SimpleQueue[None] = SimpleQueue()
        for _ in range(number):
            self.free.put(None)

    def acquire(self, check: Callable[[], None]) -> Callable[[], None]:
        """Wait for a slot; return the function that releases it, which does so once.

        Args:
            check: called every `CHECK_INTERVAL` seconds and before returning; ends the wait by an
                exception.
        """
        if not self.try_acquire(0):
            while not self.try_acquire(CHECK_INTERVAL):
                check()
            try:
                # The client may have left since the last look.
                check()
            except BaseException:
                self.release()
                raise
        held = [None]

        def release() -> None:
            try:
                held.pop()
            except IndexError:
                return
            self.release()

        return release

    def try_acquire(self, timeout: float) -> bool:
        """Take a slot; `False` if none becomes free within so many seconds."""
        try:
            self.free.get(timeout=timeout)
        except Empty:
            return False
        return True

    def release(self) -> None:
        """Free a slot; called from any thread."""
        self.free.put(None)

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function that blocks."""
        return function(*arguments)


class GreenletSlots(ProgramSlots):
    """Slots for greenlets: functions that block run in a thread pool, while gevent's hub goes on.

    Not in the hub's own pool: it resolves names for the whole process, and must not be full of
    threads that wait for programs.
    """

    def __init__(self, number: int) -> None:
        from gevent import get_hub
        from gevent.lock import BoundedSemaphore
        from gevent.threadpool import ThreadPool

        # A greenlet that waits at `SimpleQueue` would block the hub.
        self.semaphore = BoundedSemaphore(number)
        self.hub = get_hub()
        # A running program holds one slot, and blocks at most one thread.
        self.pool = ThreadPool(number)

    def try_acquire(self, timeout: float) -> bool:
        """Take a slot; `False` if none becomes free within so many seconds."""
        return self.semaphore.acquire(blocking=timeout > 0, timeout=timeout or None)

    def release(self) -> None:
        """Free a slot, in the hub."""
        self.hub.loop.run_callback_threadsafe(self.semaphore.release)

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in a thread of the pool."""
        result, error = self.pool.apply(_result_or_error, (function, arguments))
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]


def _result_or_error(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[Any, Exception | None]:
    """Call a function; return its exception, because gevent would log one that is raised."""
    try:
        return function(*arguments), None
    except Exception as error:
        return None, error
