"""Where the processes of a version come from."""

from __future__ import annotations

import os

from poorhttp.dev.reload.generation import Generation
from poorhttp.process import fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.dev.reload.fork_server import ForkServer
    from poorhttp.process.worker_context import WorkerContext
    from poorhttp.supervisor.scoreboard import Scoreboard
    from poorhttp.worker.service import Service


class Spawner:
    """Forks the processes of a version: from the keeper if there is one, or else from us.

    Attributes:
        generation: of one service.
    """

    def __init__(self, generation: Generation, fork_server: ForkServer | None) -> None:
        self.generation = generation
        self._fork_server = None if generation.page is not None else fork_server

    @property
    def service(self) -> Service:
        """What is served."""
        return self.generation.service

    @property
    def scoreboard(self) -> Scoreboard:
        """Where its processes stand, beside those of other versions."""
        return self.generation.shared.scoreboards[self.generation.service_index]

    @property
    def ready(self) -> bool:
        """Whether a process can be forked by now."""
        fork_server = self._fork_server
        return (
            fork_server is None
            or fork_server.is_unavailable
            or (fork_server.ready and fork_server.is_free())
        )

    def fork(self, context: WorkerContext) -> int:
        """Fork a process; return it, or 0 if that does not work.

        Raises:
            OSError: there is no room for it.
        """
        if self._fork_server is not None and not self._fork_server.is_unavailable:
            return self._fork_server.fork(self.generation, context)
        parent = os.getpid()
        return fork.fork(lambda: self.generation.run(context, parent))
