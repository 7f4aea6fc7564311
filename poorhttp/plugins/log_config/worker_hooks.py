"""What `poorhttp check` does about the option `log_config`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from poorhttp.config.settings import Settings
from poorhttp.worker.plugin_hooks import WorkerHooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.net.listener import Listener
    from poorhttp.worker.plugin_hooks import IsOurs


class LogConfigHooks(WorkerHooks):
    """A server reads the file when it opens its logs, which `poorhttp check` does not."""

    def try_open(self, services: Sequence[Settings], is_ours: IsOurs) -> Sequence[Listener]:
        """Check the file, in the folder of the services."""
        from poorhttp.plugins.log_config import checked  # only for this command

        checked.check(services[0], os.getcwd())
        return ()


HOOKS = LogConfigHooks()
