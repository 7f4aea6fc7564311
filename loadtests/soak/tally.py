"""Counts of a soak so far: right, wrong and lost responses, and faults of clients."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

from loadtests.clients.steady.known_requests import Nature

MOST_TOLD = 100
SHOWN = 600


class Deaths:
    """When workers died that were asked to; a connection may be lost with one, but only then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: list[list[float]] = []

    def begin(self) -> Callable[[], None]:
        """From now on a worker may die; call what is returned when it has."""
        interval = [time.monotonic(), float("inf")]
        with self._lock:
            self._times.append(interval)

        def end() -> None:
            interval[1] = time.monotonic()

        return end

    def explain(self, since: float) -> bool:
        """Whether one died after `since`."""
        with self._lock:
            return any(end >= since for _, end in self._times)


class Tally:
    """Counts, by kind. `tell` is given the details of what was wrong, the first hundred times."""

    def __init__(self, tell: Callable[..., None]) -> None:
        self.right: Counter[str] = Counter()
        self.natures: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.first_wrong: list[str] = []
        self._lock = threading.Lock()
        self._tell = tell

    def count_right(self, kind: str, nature: Nature) -> None:
        """An answer was the one that was due."""
        with self._lock:
            self.right[kind] += 1
            self.natures[nature.value] += 1

    def count_lost(self, kind: str) -> None:
        """An answer was lost with a worker that had been told to die."""
        with self._lock:
            self.lost[kind] += 1

    def count_fault(self, kind: str) -> None:
        """A client has misbehaved."""
        with self._lock:
            self.faults[kind] += 1

    def count_wrong(self, kind: str, what: str, request: bytes, received: bytes) -> None:
        """An answer was wrong, or missing."""
        with self._lock:
            self.wrong[kind] += 1
            if sum(self.wrong.values()) <= MOST_TOLD:
                self.first_wrong.append(f"{kind}: {what}")
                self._tell(
                    "wrong",
                    kind=kind,
                    what=what,
                    request=repr(request[:SHOWN]),
                    received=repr(received[:SHOWN]),
                )

    def total(self) -> int:
        """Answers that were right."""
        with self._lock:
            return sum(self.right.values())
