"""Calls a function repeatedly in a thread while a context is open."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class Repeatedly:
    """Does it at once, every so many seconds until the block ends, and once more then.

    If it fails it is not done again, and the failure is raised where the block ends.
    """

    def __init__(self, action: Callable[[], object], every: float) -> None:
        self._action = action
        self._every = every
        self._failure: Exception | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if kind is None and self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        due = time.monotonic()
        over = False
        try:
            self._action()
            while not over:
                due += self._every
                over = self._over.wait(max(0.0, due - time.monotonic()))
                self._action()
        except Exception as failure:
            self._failure = failure
