"""Calls a function repeatedly in a thread while a context is open."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")


class Repeatedly(Generic[T]):
    """Looks at once, every so many seconds until the block ends, and once more then.

    `looks` are what it has seen, in order. If one fails there is no other, and the failure is
    raised where the block ends.
    """

    def __init__(self, look: Callable[[], T], every: float) -> None:
        self.look = look
        self.looks: list[T] = []
        self._every = every
        self._over = threading.Event()
        self._thread = ThreadPoolExecutor(1)

    def wait_for(self, looks: int) -> None:
        """Wait until it has looked so often, or has failed."""
        while len(self.looks) < looks and not self._done.done():
            time.sleep(self._every)

    def __enter__(self) -> Self:
        self._done = self._thread.submit(self._run)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._over.set()
        self._thread.shutdown()
        if kind is None:
            self._done.result()

    def _run(self) -> None:
        due = time.monotonic()
        self.looks.append(self.look())
        while not self._over.is_set():
            due += self._every
            self._over.wait(max(0.0, due - time.monotonic()))
            self.looks.append(self.look())
