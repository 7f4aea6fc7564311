"""Which workers answer pings in time, and which cannot because all their threads have requests."""

from __future__ import annotations

from poorhttp.config.address import is_raw_tcp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.supervisor.worker_handle import WorkerHandle
    from poorhttp.supervisor.worker_pool import WorkerPool

#: Seconds after which a ping without an answer counts as failed.
SILENCE = 3.0


def answers(worker: WorkerHandle, now: float) -> bool:
    """Whether a worker serves, is not stopped, and answers pings in time."""
    return worker.serves and not worker.kill_stopped_at and not _is_silent(worker, now)


def answering(pool: WorkerPool, now: float) -> int:
    """Return how many workers of a pool answer, or may: threads of raw TCP are in handlers long."""
    workers = [each for each in pool.workers.values() if not each.kill_at]
    if is_raw_tcp(pool.settings.target):
        return sum(worker.serves and not worker.kill_stopped_at for worker in workers)
    return sum(answers(worker, now) for worker in workers)


def full(pool: WorkerPool, now: float) -> int:
    """Return how many of the other workers cannot answer because they are full."""
    workers = (each for each in pool.workers.values() if not each.kill_at)
    return sum(_is_silent(worker, now) and pool.is_full(worker) for worker in workers)


def _is_silent(worker: WorkerHandle, now: float) -> bool:
    return bool(worker.pinged) and now - worker.pinged >= SILENCE
