"""Looks at the workers of a service, and adds and ends them as `worker_count` decides."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from poorhttp import logs
from poorhttp.config.parsers import Automatic
from poorhttp.config.resources import usable_cpus
from poorhttp.plugins.autoscaling import resources
from poorhttp.plugins.autoscaling.worker_count import WorkerCount
from poorhttp.plugins.autoscaling.worker_hooks import worker_bounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.autoscaling.worker_count import Look
    from poorhttp.supervisor.worker_pool import WorkerPool

#: Seconds between two looks while requests come, and before and after which figures say nothing.
INTERVAL, EARLY, OLD = 0.5, 0.25, 3.0

#: Seconds without a request after which nobody looks until the next one comes.
QUIET = 30.0

#: Seconds for which the memory of workers is remembered: the kernel walks all pages for that.
MEMORY = 5.0


class WorkerWatch:
    """The workers of a pool at the last look, and what is decided about them.

    Attributes:
        due: when the next look is due, monotonic; infinite: when a worker reports a request.
    """

    def __init__(self, pool: WorkerPool) -> None:
        self.due = 0.0
        self._pool = pool
        least, most = worker_bounds(pool.settings)
        forking = pool.settings.mode == "forking"
        self._count = WorkerCount(least, most, usable_cpus(), one_at_a_time=forking)
        self._chosen = pool.count  # by this object; another number is that of a person
        self._is_by_hand = False
        self._added = self._ended = 0
        self._limit = resources.memory_limit()
        self._room = 0  # for so many more workers there is memory
        self._room_due = 0.0
        self._looked = self._busy = time.monotonic()
        self._requests = self._begun()
        self._idle = resources.idle_time()
        # By process ID: processor time, and how long it has waited for a processor.
        self._used: dict[int, float] = {}
        self._delayed: dict[int, float] = {}
        self._interpreters = 0, 0  # looks at interpreters, and those that found one held

    def _begun(self) -> int:
        return sum(status.counts()[0] for status in self._pool.statuses())

    def is_woken(self) -> bool:
        """Whether requests have come, or a person has set a number, while nobody has looked."""
        by_hand = self._pool.count != self._chosen
        return by_hand != self._is_by_hand or (
            self.due == float("inf") and self._begun() != self._requests
        )

    def look(self, now: float, pools: Sequence[WorkerPool]) -> None:
        """Look at the workers, and do what is decided; the workers of `pools` share the memory."""
        pool = self._pool
        self.due = now + INTERVAL
        look, elapsed = self._read(now)
        if look["in_flight"] or self._begun() != self._requests:
            self._requests, self._busy = self._begun(), now
        if (by_hand := pool.count != self._chosen) and not self._is_by_hand:
            text = "workers = auto leaves this number until the next reload"
            logs.write("info", f"{pool.name}{text}")
        self._is_by_hand = by_hand
        pool.scaling["workers_by_hand"] = int(by_hand)
        # One that begins computes for nobody, and one that is replaced would count twice.
        present = [worker for worker in pool.workers.values() if not worker.kill_at]
        is_settled = len(present) == pool.serving == pool.count and not pool.backoff.count
        if is_settled and EARLY < elapsed < OLD:
            if not by_hand:
                if self._count.wants_more(look) or pool.count > self._count.least:
                    look["room"] = self._room_now(now, pools)
                self._change(self._count.decide(look), look)
            found = {name: look[name] for name in ("in_flight", "used", "idle", "held", "room")}
            pool.scaling |= {**found, "added": self._added, "ended": self._ended}
        if now - self._busy > QUIET and (by_hand or pool.count <= self._count.least):
            for status in pool.statuses():
                status.await_request()
            if self._begun() == self._requests:
                self.due = float("inf")

    def _read(self, now: float) -> tuple[Look, float]:
        """Return what is seen, and the seconds since the last look."""
        pool = self._pool
        elapsed, self._looked = now - self._looked, now
        idle_before, self._idle = self._idle, resources.idle_time()
        used_before, delayed_before = self._used, self._delayed
        self._used = {pid: worker.usage()[0] for pid, worker in pool.workers.items()}
        self._delayed = {pid: resources.delay_of(pid) for pid in pool.workers}
        looks = held = 0
        if isinstance(pool.settings.threads, Automatic):
            seen = [each.figures()["interpreter_looks"] for each in pool.statuses()]
            looks = sum(sum(each.values()) for each in seen)
            held = sum(each["held"] for each in seen)
        (looks_before, held_before), self._interpreters = self._interpreters, (looks, held)
        looks, held = looks - looks_before, held - held_before
        return {
            "now": now,
            "workers": pool.count,
            "in_flight": sum(status.counts()[1] for status in pool.statuses()),
            "used": _grown(used_before, self._used) / max(elapsed, 0.001),
            "delayed": _grown(delayed_before, self._delayed) / max(elapsed, 0.001),
            "idle": (self._idle - idle_before) / max(elapsed, 0.001),
            # Figures of a worker that has ended are missing.
            "held": held / looks if 0 < held <= looks else 0.0,
            "room": self._room,
        }, elapsed

    def _room_now(self, now: float, pools: Sequence[WorkerPool]) -> int:
        """Return for how many more workers there is memory; negative: there are too many."""
        if now >= self._room_due:
            self._room_due = now + MEMORY
            sizes = {
                pool: [max(each.pss(), pool.settings.max_rss) for each in pool.workers.values()]
                for pool in pools
            }
            rest = self._limit - sum(map(sum, sizes.values()))
            if rest > 0:
                rest = min(rest, int(resources.memory_available() * resources.SHARE))
            self._room = rest // max(1, *sizes[self._pool])
        return self._room

    def _change(self, change: int, look: Look) -> None:
        if not change:
            return
        pool = self._pool
        pool.resize(pool.count + change)
        self._chosen = pool.count
        # What a new worker takes is known when it serves.
        self._room_due = 0.0
        self._added += max(0, change)
        self._ended += max(0, -change)
        logs.write(
            "info",
            f"{pool.name}{pool.count} workers from now on (workers = auto): {look['in_flight']} "
            f"requests in flight, {look['used']:.1f} processors used and {look['idle']:.1f} idle, "
            f"memory for {look['room']} more before",
        )


def _grown(before: Mapping[int, float], now: Mapping[int, float]) -> float:
    """Return by how much the times of processes have grown that were there before."""
    found = sum(time - before[pid] for pid, time in now.items() if pid in before)
    return float("inf") if math.isnan(found) else found  # from infinite to infinite
