"""In the main process: has services followed, and hands on what was learned to new workers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from poorhttp.config.parsers import Automatic
from poorhttp.plugins.autoscaling.worker_watch import WorkerWatch
from poorhttp.supervisor.component import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.settings import Settings
    from poorhttp.net.listener import Listener
    from poorhttp.supervisor.component import Main
    from poorhttp.supervisor.worker_handle import WorkerHandle
    from poorhttp.supervisor.worker_pool import WorkerPool

#: Environment variable with the number of workers of each service, for the next main process.
VARIABLE = "_POORHTTP_WORKERS"


class Autoscaler(Component):
    """Watches services with `workers = auto`; new workers begin with the threads of others."""

    def __init__(self, main: Main) -> None:
        super().__init__(main)
        self._watches: dict[WorkerPool, WorkerWatch] = {}

    def open(self, services: Sequence[Settings], have: Sequence[Listener]) -> None:
        """Go on with the workers of the main process before this one."""
        if text := os.environ.pop(VARIABLE, ""):
            import json  # takes memory

            _begin_with(services, json.loads(text))

    def prepare(self, services: Sequence[Settings]) -> None:
        """Have the next version begin with the workers of this one."""
        _begin_with(services, self._counts())

    def environ(self) -> Mapping[str, str]:
        """Return the number of workers of each service that is watched."""
        if not (counts := self._counts()):
            return {}
        import json  # takes memory

        return {VARIABLE: json.dumps(counts)}

    def _counts(self) -> dict[str, int]:
        return {pool.settings.service: pool.count for pool in self._watches}

    def due(self) -> float:
        """Return when the next look is due."""
        return min((each.due for each in self._watches.values()), default=float("inf"))

    def tick(self, now: float) -> None:
        """Look at the services for which that is due."""
        main = self.main
        if not main.started or main.replaced or main.stop_signal:
            self._watches = {}
            return
        pools = main.generations.serving
        self._watches = {
            pool: self._watches.get(pool) or WorkerWatch(pool)
            for pool in pools
            if isinstance(pool.settings.workers, Automatic)
        }
        for watch in self._watches.values():
            if watch.due <= now or watch.is_woken():
                watch.look(now, pools)

    def worker_started(self, pool: WorkerPool, worker: WorkerHandle) -> None:
        """Ask a new worker for as many threads as a person has set, or another worker has.

        Those of other versions serve until it does, so their number is in their status.
        """
        if (watch := self._watches.get(pool)) is not None:
            # It has to be asked to report its requests.
            watch.due = 0.0
        status = pool.scoreboard.status(worker.slot)
        if status is None or not isinstance(pool.settings.threads, Automatic):
            return
        pools = [
            each for each in self.main.generations if each.settings.service == pool.settings.service
        ]
        others = [each for other in pools for each in other.statuses()] + pool.totals.statuses
        status.want_threads(max(each.figures()["threads"] for each in others))
        if held := pool.scaling.get("threads_by_hand"):
            status.want_threads(int(held), hold=True)


def _begin_with(services: Sequence[Settings], counts: Mapping[str, int]) -> None:
    """Have services with `workers = auto` begin with so many, by their names."""
    for settings in services:
        if isinstance(settings.workers, Automatic) and settings.service in counts:
            settings.workers = Automatic(counts[settings.service])
