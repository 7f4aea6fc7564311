"""Checks the bounds of the number of threads, and gives them to the reactor of a worker."""

from __future__ import annotations

from poorhttp.config.parsers import Automatic
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError
from poorhttp.plugins.autoscaling.options import Autoscaling
from poorhttp.worker.plugin_hooks import WorkerHooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: What other modes do, in place of running threads.
OTHERS = {
    "single": "runs one request at a time",
    "forking": "runs one request at a time in each worker (workers)",
    "asyncio": "runs a task for each request, or WSGI applications in a fixed number of threads",
    "gevent": "runs a greenlet for each request, as many as there are (max_connections)",
}


class AutoscalingHooks(WorkerHooks):
    """Used with `threads = auto`."""

    def check(self, settings: Settings) -> None:
        """Check that the mode has threads, and that there may be more at the end than at first."""
        options, where = settings.of(Autoscaling), settings.origin("threads")
        if settings.mode != "threading":
            does = OTHERS.get(settings.mode, "has no threads of the server")
            raise ConfigError(
                f"{where}: threads = auto is for mode threading; mode {settings.mode} {does}"
            )
        if options.min_threads > options.max_threads:
            raise ConfigError(
                f"{settings.origin('min_threads')}: min_threads = {options.min_threads} is more "
                f"than max_threads = {options.max_threads}"
            )
        settings.threads = Automatic(options.min_threads)

    def reactor_arguments(self, settings: Settings) -> dict[str, Any]:
        """Return the fewest and the most threads."""
        options = settings.of(Autoscaling)
        return {"auto_threads": (options.min_threads, options.max_threads)}


HOOKS = AutoscalingHooks()
