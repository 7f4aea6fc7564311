"""Pings the workers, and tells the watchdog of systemd (sd_notify) as long as they answer."""

from __future__ import annotations

import time
from collections.abc import Sequence

from poorhttp import logs
from poorhttp.net.systemd import Notifier
from poorhttp.supervisor.worker_pool import WorkerPool

#: Seconds between two pings while `admin` is asked.
PING_INTERVAL = 2.0

#: For how many seconds after a question the workers are pinged: until a ping that has no answer
#: counts as failed; and twice as long as it is since the question before, so that the next one of a
#: regular client finds a new answer, unless that is longer than `LONGEST`.
SHORTEST, LONGEST = 4.0, 60.0


class Watchdog:
    """Pings the workers, if systemd's watchdog needs their answers, or while `admin` is asked.

    Each service must have a worker that answers, or whose threads all have requests: a request that
    hangs is a matter for `request_timeout`, not for killing the server. A ping is answered by the
    thread that would take the next request.
    """

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        self._within = notifier.watchdog_seconds
        self._next = time.monotonic() if self._within else float("inf")
        self._asked_until = 0.0
        self._last_question = float("-inf")
        #: Each service had a responsive worker at the last check.
        self._was_responsive = False

    def due(self) -> float:
        """Return when `tick` has to be called."""
        return self._next

    def on_question(self) -> None:
        """Ping the workers for a while: somebody asks `admin` whether they answer."""
        now = time.monotonic()
        if now >= self._asked_until:
            self._next = now
        twice, self._last_question = 2 * (now - self._last_question), now
        period = twice if SHORTEST < twice <= LONGEST else SHORTEST
        self._asked_until = max(self._asked_until, now + period)

    def tick(self, pools: Sequence[WorkerPool], now: float) -> None:
        """Notify systemd and ping the workers, if it is time."""
        if now < self.due():
            return
        asked = PING_INTERVAL if now < self._asked_until else float("inf")
        self._next = now + min(self._within / 4 or float("inf"), asked)
        if self._within:
            self._notify(pools, now)
        for pool in pools:
            pool.ping()

    def _notify(self, pools: Sequence[WorkerPool], now: float) -> None:
        silent = [pool for pool in pools if not pool.is_responsive(since=now - self._within)]
        if not silent:
            self._notifier.watchdog()
        elif self._was_responsive:
            logs.write(
                "error",
                f"{silent[0].name}no worker answers; the watchdog of systemd is not notified",
            )
        self._was_responsive = not silent
