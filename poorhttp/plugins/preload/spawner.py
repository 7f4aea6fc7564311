"""Has the workers of a pool forked by a preloader, in the main process.

If workers are recycled regularly, the preloader stays; otherwise it ends when the last worker
serves, because its own copies of the pages to which all workers have written would be the largest
part of a small server.
"""

from __future__ import annotations

import time

from poorhttp import logs
from poorhttp.plugins.preload.options import Preloading
from poorhttp.plugins.preload.preloader import Preloader
from poorhttp.process.exit_status import end_of
from poorhttp.supervisor.spawner import Spawner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.preload.refork import Refork
    from poorhttp.process.worker_context import WorkerContext
    from poorhttp.supervisor.worker_handle import WorkerHandle
    from poorhttp.worker.service import Service

#: Seconds after which a preloader that has no more workers to fork is ended.
IDLE = 0.5

#: With one of these options, workers are recycled regularly.
RECYCLING = ("max_requests", "max_rss", "max_lifetime")


class PreloadingSpawner(Spawner):
    """Starts a preloader when a worker is to be forked, and ends it when no more are.

    Attributes:
        process: the preloader, if there is one now.
    """

    kills_unready = False
    orders = True
    process: Preloader | None = None

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._refork: Refork | None = None
        if service.settings.of(Preloading).refork_after:
            from poorhttp.plugins.preload.refork import Refork  # takes memory

            self._refork = Refork(self)

    # A fork

    def prepare(self) -> None:
        """Start a preloader, if there is none."""
        if self.process is None:
            self.process = Preloader(self.service, self.scoreboard)

    @property
    def ready(self) -> bool:
        """Whether the preloader can fork a worker now."""
        return self.process is not None and self.process.ready

    def order(self, context: WorkerContext) -> bool:
        """Have the preloader fork a worker; `False` if that fails."""
        refork_after = self._refork.note_fork(context.slot) if self._refork is not None else 0
        return self.process is not None and self.process.order(context, refork_after)

    # The loop of the main process

    def tick(self, now: float) -> None:
        """Receive messages; go on with a refork; end a preloader that has nothing to do."""
        if self.process is not None:
            self.process.tick(now)
        if self._refork is not None:
            self._refork.tick(now)
        if self.process is not None and not self.pool.retiring and self.due() <= now:
            self.process.retire(now + self.pool.stop_timeout)

    def due(self) -> float:
        """Return when the preloader is to end, because it has no more workers to fork."""
        pool = self.pool
        if (
            self.process is None
            or self.process.retired
            or pool.ordered is not None
            or pool.serving < pool.count
            or any(pool.settings.is_enabled(name) for name in RECYCLING)
            or any(
                worker.recycle_reason and worker.successor is None and not worker.kill_at
                for worker in pool.workers.values()
            )
        ):
            return float("inf")
        return pool.last_start + IDLE

    def worker_ended(self, worker: WorkerHandle) -> None:
        """Give a refork up if it needs this worker."""
        if self._refork is not None:
            self._refork.on_worker_exit(worker)

    # The preloader

    def stop(self, number: int, until: float) -> None:
        """End the preloader by a signal; it is killed at `until`."""
        if self.process is not None:
            self.process.stop(number, until)

    def reopen_logs(self) -> None:
        """Have the preloader reopen its logs."""
        if self.process is not None:
            self.process.reopen_logs()

    def on_stopped(self, number: int) -> None:
        """Handle that a signal has stopped the preloader, or that it was continued (0)."""
        if self.process is not None:
            self.process.on_stopped(number)

    def on_exit(self, code: int) -> None:
        """Log how the preloader has ended, if it was not to; the next fork starts another one."""
        pool, preloader, self.process = self.pool, self.process, None
        assert preloader is not None
        preloader.tick(time.monotonic())
        preloader.channel.close()
        if pool.hooks is not None and (preloader.loaded or pool.complete):
            reason = "stopped" if preloader.retired else "exited"
            reason = pool.end_reason if pool.retiring else reason
            pool.hooks.spawner_exit(pool, preloader.pid, reason, code)
        if pool.retiring or preloader.retired:
            return
        if self._refork is not None:
            self._refork.on_preloader_exit()
        how = end_of(code)
        if not pool.complete and not preloader.loaded:
            if code <= 0:
                logs.write("error", f"the process that loads the application {how}; giving up")
            pool.failed = max(code, 1)
            pool.cause = preloader.channel.reason or f"the process that loads it {how}"
            return
        if pool.backoff.fail():
            how += f" and is replaced{pool.backoff.text()}"
            logs.write("error", f"the process that has loaded the application {how}")
