"""Checks the bounds of the numbers of threads and workers; the reactor decides about threads."""

from __future__ import annotations

from poorhttp.config.parsers import Automatic
from poorhttp.config.resources import memory_limits, usable_cpus
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError
from poorhttp.plugins.autoscaling.options import Autoscaling
from poorhttp.plugins.autoscaling.resources import memory_limit
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

#: The most workers for each usable CPU, by default.
FOR_EACH_CPU = 8


class AutoscalingHooks(WorkerHooks):
    """Used with `threads = auto` or `workers = auto`."""

    def check(self, settings: Settings) -> None:
        """Check that the mode allows these words, and the bounds; set where to begin."""
        if isinstance(settings.threads, Automatic):
            _check_threads(settings)
        if isinstance(settings.workers, Automatic):
            _check_workers(settings)

    def reactor_arguments(self, settings: Settings) -> dict[str, Any]:
        """Return the fewest and the most threads, processors of each worker, limits of memory."""
        if not isinstance(settings.threads, Automatic):
            return {}
        options = settings.of(Autoscaling)
        processors = max(1, usable_cpus() // settings.worker_count)
        bounds = options.min_threads, options.max_threads
        return {"auto_threads": (*bounds, processors, memory_limits())}


def _check_threads(settings: Settings) -> None:
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


def _check_workers(settings: Settings) -> None:
    where = settings.origin("workers")
    if settings.mode == "single":
        raise ConfigError(
            f"{where}: workers = auto is not for mode single; mode forking runs one request at a "
            "time in each of several workers"
        )
    if not settings.supervisor:
        raise ConfigError(f"{where}: workers = auto needs a main process (supervisor = on)")
    if settings.reuse_port:
        raise ConfigError(
            f"{where}: workers = auto cannot be used with reuse_port, which gives each worker a "
            "socket of its own"
        )
    least, most = worker_bounds(settings)
    settings.workers = Automatic(min(max(settings.workers, least), most))


def worker_bounds(settings: Settings) -> tuple[int, int]:
    """Return the fewest and the most workers with `workers = auto`.

    Raises:
        ConfigError: the fewest are more than the most.
    """
    options, cpus = settings.of(Autoscaling), usable_cpus()
    # As many as with `workers` 0 in mode `forking`, where each has one request.
    least = options.min_workers or max(cpus, 2 if settings.mode == "forking" else 1)
    most = options.max_workers or max(FOR_EACH_CPU * cpus, least)
    if least > most and options.min_workers:
        raise ConfigError(
            f"{settings.origin('min_workers')}: min_workers = {least} is more than max_workers = "
            f"{most}"
        )
    if settings.max_rss:
        most = max(1, min(most, memory_limit() // settings.max_rss))
    return min(least, most), most


HOOKS = AutoscalingHooks()
