"""The class `Spawner`: forks the workers of a pool; plug-ins derive from it to fork elsewhere."""

from __future__ import annotations

import os

from poorhttp.process import fork
from poorhttp.supervisor.scoreboard import Scoreboard
from poorhttp.worker import start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from poorhttp.process.control_channel import ControlChannel
    from poorhttp.process.worker_context import WorkerContext
    from poorhttp.supervisor.worker_handle import WorkerHandle
    from poorhttp.supervisor.worker_pool import WorkerPool
    from poorhttp.worker.service import Service

    class SpawnerProcess(Protocol):
        """A process that forks workers, as the main process sees it."""

        pid: int
        #: The main process waits for its messages.
        channel: ControlChannel
        #: When `Spawner.tick` is called to kill it; 0: it is not to be killed.
        kill_at: float


class Spawner:
    """Base class. One spawner is for the workers of one service and one pool.

    Attributes:
        service: what the workers serve.
        scoreboard: has a slot for each of them; several spawners of a service may share it.
        pool: the pool, once that has been made.
    """

    #: Workers that do not serve yet are killed when they are to end, and are not named in the log.
    kills_unready = True
    pool: WorkerPool
    process: SpawnerProcess | None = None  # its own one, which forks the workers
    #: A worker that finishes its requests to become `process`: no other one takes its place
    #: meanwhile, and none is recycled.
    promoting: WorkerHandle | None = None

    def __init__(self, service: Service, scoreboard: Scoreboard | None = None) -> None:
        self.service = service
        # Twice as many slots, because successors start before workers end.
        self.scoreboard = scoreboard or Scoreboard(2 * service.settings.worker_count + 8)

    # A fork

    def prepare(self) -> None:
        """Begin to be ready, because a worker is to be forked.

        Raises:
            OSError: a process cannot be forked.
        """

    @property
    def ready(self) -> bool:
        """Whether a worker can be forked now."""
        return True

    @property
    def orders(self) -> bool:
        """Whether another process forks the workers, which report themselves: by `order`."""
        return False

    def order(self, context: WorkerContext) -> bool:
        """Have another process fork a worker, which reports itself over its channel.

        Returns `False` if that fails.
        """
        raise NotImplementedError

    def fork(self, context: WorkerContext) -> int:
        """Fork a worker from the main process; return its process ID.

        Raises:
            OSError: it cannot be forked.
        """
        raise NotImplementedError

    # The loop of the main process, see `WorkerPool`

    def tick(self, now: float) -> None:
        """Do what is due, after the messages of workers were received."""

    def due(self) -> float:
        """Return when `tick` is to be called, unless the pool retires."""
        return float("inf")

    def worker_ended(self, worker: WorkerHandle) -> None:
        """Handle that a worker has ended."""

    # Its process

    def stop(self, number: int, until: float) -> None:
        """End it by a signal, because the pool ends; it is killed at `until`."""

    def reopen_logs(self) -> None:
        """Have it reopen its logs: it may have lost SIGUSR1, which is sent to it before."""

    def on_stopped(self, number: int) -> None:
        """Handle that a signal has stopped it, or that it was continued (0)."""

    def on_exit(self, code: int) -> None:
        """Handle its end."""


class MainSpawner(Spawner):
    """Forks workers from the main process; each loads the application by itself."""

    kills_unready = False

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        if service.application is None and service.settings.worker_count > 1:
            from poorhttp.process.shared_imports import SharedImports  # takes memory

            service.imports = SharedImports.of(service.settings)

    def fork(self, context: WorkerContext) -> int:
        service, parent = self.service, os.getpid()
        if service.imports is not None and service.imports.repeat():
            service.imports = None
        label, run = start.worker(service, context)
        return fork.fork(lambda: start.run_child(run, parent, label, service))
