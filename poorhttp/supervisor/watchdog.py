"""Asks the workers whether they answer, and tells systemd that we are well as long as they do."""

from __future__ import annotations

import time

from poorhttp import logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from poorhttp.net.systemd import Notifier
    from poorhttp.supervisor.worker_pool import WorkerPool


class Watchdog:
    """Asks the workers, and passes it on that they answer; idle if nobody wants to know.

    Each service must have a worker that answers, or whose threads all have requests: one that hangs
    is a matter for `request_timeout`, not for killing everything. Who answers is the thread that
    would take the next request.
    """

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        self._within = notifier.watchdog_seconds
        self._interval = self._within / 4 or float("inf")
        self._next = time.monotonic()
        #: We were well the last time; not before somebody serves.
        self._well = False

    def due(self) -> float:
        """Return when to look again."""
        return self._next if self._interval < float("inf") else float("inf")

    def ask_every(self, seconds: float) -> None:
        """Ask so often at least: somebody else wants to know as well."""
        self._interval = min(self._within / 4 or float("inf"), seconds)
        self._next = min(self._next, time.monotonic() + self._interval)

    def look(self, pools: Sequence[WorkerPool], now: float) -> None:
        """Ask, and tell systemd, if it is time."""
        if now < self.due():
            return
        self._next = now + self._interval
        if self._within:
            self._tell(pools, now)
        for pool in pools:
            pool.ask()

    def _tell(self, pools: Sequence[WorkerPool], now: float) -> None:
        silent = [pool for pool in pools if not pool.answers(since=now - self._within)]
        if not silent:
            self._notifier.watchdog()
        elif self._well:
            logs.write(
                "error", f"{silent[0].name}no worker answers any more; systemd is told nothing"
            )
        self._well = not silent
