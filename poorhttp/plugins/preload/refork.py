"""A refork (`refork_after`): workers are replaced by forks of one that has served for a while.

So they share also what requests have loaded and changed. That worker finishes its requests and
becomes the preloader itself.
"""

from __future__ import annotations

import time
import weakref

from poorhttp import logs
from poorhttp.plugins.preload.options import Preloading
from poorhttp.plugins.preload.preloader import Preloader
from poorhttp.process import signals
from poorhttp.process.control_channel import PROMOTE, PROMOTED, REFORK
from poorhttp.process.signals import signal
from poorhttp.worker.stop_signals import GRACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.preload.spawner import PreloadingSpawner
    from poorhttp.supervisor.worker_handle import WorkerHandle

#: Why workers are replaced after one was promoted.
REFORKED = "it is forked anew from a worker that has served"


class Refork:
    """The reforks of a pool: promote a worker, and replace the others by forks of it."""

    count = 0  # how many there were, also those that have failed
    _untried: Preloader | None = None  # was promoted, until the first of its forks serves
    _before: int | None = None  # bytes of all workers before the refork under way

    def __init__(self, spawner: PreloadingSpawner) -> None:
        """Take the spawner, whose pool is made after this."""
        # A circle would keep its memory after a reload: that is a descriptor.
        self._spawner: PreloadingSpawner = weakref.proxy(spawner)
        #: How many reforks came before the workers, by their slots.
        self._generations: dict[int, int] = {}

    def note_fork(self, slot: int) -> int:
        """Return after how many requests a worker that is forked now may be promoted; 0: never."""
        self._generations[slot] = self.count
        numbers = self._spawner.service.settings.of(Preloading).refork_after
        return numbers[self.count] if self.count < len(numbers) else 0

    def _is_latest(self, worker: WorkerHandle) -> bool:
        """Whether no refork came after the fork of this worker."""
        return self._generations.get(worker.slot) == self.count

    def tick(self, now: float) -> None:
        """Begin a refork that is due, or go on with the one under way."""
        spawner, pool = self._spawner, self._spawner.pool
        if spawner.promoting is None:
            self._replace()
            if (worker := self._due()) is not None:
                self._begin(worker, now + pool.stop_timeout)
        elif PROMOTED[0] in spawner.promoting.reported:
            if pool.retiring:
                spawner.promoting.channel.close()
            elif spawner.process is None:
                self._promote(spawner.promoting)
            elif not spawner.process.retired:
                spawner.process.retire(now + pool.stop_timeout)
                spawner.promoting.kill_at = spawner.process.kill_at + 2 * GRACE

    def on_worker_exit(self, worker: WorkerHandle) -> None:
        """Give the refork up if the worker was to be promoted, or is the first fork of that one."""
        spawner, pool = self._spawner, self._spawner.pool
        if worker is spawner.promoting:
            spawner.promoting = None
            self.count += 1
        elif (
            self._untried is not None
            and self._untried is spawner.process
            and self._is_latest(worker)
            and not worker.serves
        ):
            # The next one is forked from a process that has only loaded the application.
            self._untried.retire(time.monotonic() + pool.stop_timeout)
            self._untried = None
        else:
            return
        self._before = None
        if not pool.retiring:
            logs.write("warning", f"not reforked, because worker {worker.pid} has ended")

    def on_preloader_exit(self) -> None:
        """Keep the workers that were to be replaced by forks of it."""
        self._untried = self._before = None
        for worker in self._spawner.pool.workers.values():
            if worker.recycle_reason == REFORKED and worker.successor is None:
                worker.recycle_reason = ""

    def _due(self) -> WorkerHandle | None:
        pool = self._spawner.pool
        workers = pool.workers.values()
        if (
            pool.retiring
            or pool.draining
            or pool.ordered is not None
            or pool.count < 2
            or pool.serving != len(workers)
            or pool.serving < pool.count
            or pool.backoff.count
            or any(each.recycle_reason for each in workers)
        ):
            return None
        due = (each for each in workers if REFORK[0] in each.reported and self._is_latest(each))
        return next(due, None)

    def _begin(self, worker: WorkerHandle, kill_at: float) -> None:
        pool = self._spawner.pool
        self._spawner.promoting = worker
        self._before = sum(each.pss() for each in pool.workers.values())
        pool.scoreboard.stop_accepting(worker.slot)
        worker.retire(kill_at, PROMOTE)
        requests = pool.scoreboard.begun(worker.slot)
        logs.write(
            "info",
            f"{pool.name}worker {worker.pid} has begun {requests} requests, and finishes: workers "
            f"are forked from it (refork {self.count + 1})",
        )

    def _promote(self, worker: WorkerHandle) -> None:
        spawner = self._spawner
        spawner.promoting = None
        self.count += 1
        self._untried = Preloader(spawner.service, spawner.scoreboard, worker)
        for listener in spawner.service.listeners:
            if not worker.channel.send_fd(b"listener\n", listener.fileno()):
                signals.send(worker.pid, signal.SIGKILL)
        spawner.pool.on_promoted(worker)
        spawner.process = self._untried

    def _replace(self) -> None:
        """Have the other workers replaced once the first fork serves; log when all are."""
        pool = self._spawner.pool
        workers = pool.workers.values()
        forks = [each for each in workers if self._is_latest(each)]
        if self._untried is not None and any(each.serves for each in forks):
            self._untried = None
            for each in workers:
                if not self._is_latest(each):
                    each.recycle_reason = each.recycle_reason or REFORKED
        if self._before is not None and 0 < len(forks) == len(workers) == pool.serving:
            before, self._before = self._before, None
            pool.totals.count_refork()
            now = sum(each.pss() for each in workers)
            memory = f": {before >> 20} MiB (PSS) before, {now >> 20} MiB now" if before else ""
            logs.write("info", f"{pool.name}reforked {len(workers)} workers{memory}")
