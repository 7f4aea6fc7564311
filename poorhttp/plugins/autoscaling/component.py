"""Has a new worker begin with as many threads as the workers before it had at last."""

from __future__ import annotations

from poorhttp.config.parsers import Automatic
from poorhttp.supervisor.component import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.supervisor.worker_handle import WorkerHandle
    from poorhttp.supervisor.worker_pool import WorkerPool


class Autoscaler(Component):
    """Hands on what was learned: at a reload, a binary upgrade, and when a worker is replaced.

    The workers before serve until the new one does, so their number is in their status.
    """

    def worker_started(self, pool: WorkerPool, worker: WorkerHandle) -> None:
        """Ask a new worker for as many threads as another one of its service has."""
        status = pool.scoreboard.status(worker.slot)
        if status is None or not isinstance(pool.settings.threads, Automatic):
            return
        pools = [
            each for each in self.main.generations if each.settings.service == pool.settings.service
        ]
        others = [each for other in pools for each in other.statuses()] + pool.totals.statuses
        status.want_threads(max(each.figures()["threads"] for each in others))
