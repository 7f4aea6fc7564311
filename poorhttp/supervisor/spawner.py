"""The class `Spawner`: forks the workers of a pool; plug-ins derive from it to fork elsewhere."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.process.worker_context import WorkerContext
    from poorhttp.supervisor.scoreboard import Scoreboard
    from poorhttp.worker.service import Service


class Spawner:
    """Base class. One spawner is for the workers of one service and one pool.

    Attributes:
        service: what the workers serve.
        scoreboard: has a slot for each of them; several spawners of a service may share it.
    """

    def __init__(self, service: Service, scoreboard: Scoreboard) -> None:
        self.service = service
        self.scoreboard = scoreboard

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
