"""Notifies systemd from the main process, and its watchdog as long as workers answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from poorhttp import logs
from poorhttp.config.address import is_raw_tcp
from poorhttp.plugins.systemd.notifier import Notifier
from poorhttp.supervisor.component import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.supervisor.component import Main
    from poorhttp.supervisor.worker_pool import WorkerPool


class Systemd(Component):
    """Sends what happens to the server, and pings the workers if there is a watchdog.

    Each service must have a worker that answers, or whose threads all have requests: a request that
    hangs is a matter for `request_timeout`, not for killing the server. A ping is answered by the
    thread that would take the next request.
    """

    def __init__(self, main: Main) -> None:
        super().__init__(main)
        self._notifier = Notifier()
        self._within = self._notifier.watchdog_seconds
        self._next = time.monotonic() if self._within else float("inf")
        #: Each service had a responsive worker at the last check.
        self._was_responsive = False
        #: The number of workers that was sent; empty: none was.
        self._sent = ""

    def environ(self) -> Mapping[str, str]:
        """Return the variables with which the next main process goes on notifying."""
        return self._notifier.environ

    def stop(self) -> None:
        """Stop notifying."""
        self._notifier.close()

    # Events

    def ready(self, urls: Sequence[str]) -> None:
        """Notify that all workers serve."""
        self._sent = self._status()
        self._notifier.ready(self._sent)

    def begun(self, kind: str) -> None:
        """Notify that a reload begins."""
        if kind == "reload":
            self._notifier.reloading()

    def ended(self, kind: str, message: str, *, succeeded: bool) -> None:
        """Notify of the end of a reload, or of the new main process."""
        if kind == "reload":
            self._sent = self._status()
            self._notifier.ready(self._sent if succeeded else f"{self._sent}; {message}")
        elif succeeded:
            self._notifier.main_pid(self.main.successor)

    def draining(self) -> None:
        """Notify that the stop has begun, unless an operator has only drained the server."""
        if self.main.drain_until < float("inf"):
            delay = self.main.generations.serving[0].settings.drain_delay
            self._notifier.stopping(f"not ready; the stop begins in {delay:g} s")

    def stopping(self, number: int) -> None:
        """Notify that the stop has begun."""
        self._notifier.stopping()

    # The loop of the main process

    def due(self) -> float:
        """Return when the watchdog has to be notified."""
        return self._next

    def tick(self, now: float) -> None:
        """Notify of a changed number of workers; notify the watchdog, and ping the workers."""
        status = self._status()
        if self._sent not in ("", status) and not self.main.replaced:
            self._sent = status
            self._notifier.status(status)
        if now < self._next:
            return
        self._next = now + self._within / 4
        self._notify_watchdog(now)
        for pool in self.main.generations.serving:
            pool.ping()

    def _notify_watchdog(self, now: float) -> None:
        pools = self.main.generations.serving
        silent = [pool for pool in pools if not _answers(pool, since=now - self._within)]
        if not silent:
            self._notifier.watchdog()
        elif self._was_responsive:
            logs.write(
                "error",
                f"{silent[0].name}no worker answers; the watchdog of systemd is not notified",
            )
        self._was_responsive = not silent

    def _status(self) -> str:
        """Return what `systemctl status` shows."""
        pools = self.main.generations.serving
        return ", ".join(f"{pool.name}{pool.count} workers" for pool in pools)


def _answers(pool: WorkerPool, since: float) -> bool:
    """Tell whether a worker of a pool has answered a ping since then, or is busy."""
    serving = [each for each in pool.workers.values() if each.serves and not each.kill_at]
    if is_raw_tcp(pool.settings.target):
        # All its threads may be in handlers for a long time.
        return bool(serving)
    return any(each.last_answer >= since or pool.is_full(each) for each in serving)
