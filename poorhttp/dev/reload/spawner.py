"""Where the processes of a version come from."""

from __future__ import annotations

import os

from poorhttp.dev.reload.generation import Version
from poorhttp.process import fork as birth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.dev.reload.fork_server import Keeper
    from poorhttp.process.worker_context import WorkerContext
    from poorhttp.supervisor.scoreboard import Scoreboard
    from poorhttp.worker.service import Service


class Cradle:
    """Forks the processes of a version: from the keeper if there is one, or else from us.

    Attributes:
        version: of one service.
    """

    def __init__(self, version: Version, keeper: Keeper | None) -> None:
        self.version = version
        self._keeper = None if version.page is not None else keeper

    @property
    def service(self) -> Service:
        """What is served."""
        return self.version.service

    @property
    def scoreboard(self) -> Scoreboard:
        """Where its processes stand, beside those of other versions."""
        return self.version.lineage.scoreboards[self.version.which]

    @property
    def ready(self) -> bool:
        """Whether a process can be forked by now."""
        keeper = self._keeper
        return keeper is None or keeper.is_gone or (keeper.ready and keeper.is_free())

    def fork(self, context: WorkerContext) -> int:
        """Fork a process; return it, or 0 if that does not work.

        Raises:
            OSError: there is no room for it.
        """
        if self._keeper is not None and not self._keeper.is_gone:
            return self._keeper.fork(self.version, context)
        parent = os.getpid()
        return birth.fork(lambda: self.version.live(context, parent))
