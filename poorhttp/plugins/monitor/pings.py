"""Pings workers every two seconds for a while after each question about status or readiness."""

from __future__ import annotations

import time
from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.supervisor.worker_pool import WorkerPool

#: Seconds between two pings.
INTERVAL = 2.0

#: For how many seconds after a question the workers are pinged: until a ping that has no answer
#: counts as failed; and twice as long as it is since the question before, so that the next one of a
#: regular client finds a new answer, unless that is longer than `LONGEST`.
SHORTEST, LONGEST = 4.0, 60.0


class Pings:
    """Pings for a while after each question."""

    def __init__(self) -> None:
        self._next = float("inf")
        self._asked_until = 0.0
        self._last_question = float("-inf")

    def due(self) -> float:
        """Return when `tick` has to be called."""
        return self._next

    def on_question(self) -> None:
        """Ping the workers for a while: somebody asks whether they answer."""
        now = time.monotonic()
        if now >= self._asked_until:
            self._next = now
        twice, self._last_question = 2 * (now - self._last_question), now
        period = twice if SHORTEST < twice <= LONGEST else SHORTEST
        self._asked_until = max(self._asked_until, now + period)

    def tick(self, pools: Sequence[WorkerPool], now: float) -> None:
        """Ping the workers, if it is time."""
        if now < self._next:
            return
        self._next = now + INTERVAL if now < self._asked_until else float("inf")
        for pool in pools:
            pool.ping()
