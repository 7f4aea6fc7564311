"""Refuses settings that `refork_after` cannot work with, before a worker is forked from another."""

from __future__ import annotations

from poorhttp.config.address import is_raw_tcp
from poorhttp.errors import ConfigError
from poorhttp.plugins.preload.options import Preloading
from poorhttp.worker.plugin_hooks import WorkerHooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.settings import Settings


class PreloadingHooks(WorkerHooks):
    """What preloading asks of the settings of a service."""

    #: With those that call the functions of `before_refork`.
    modules = ("plugins.preload", "worker.hooks")

    def check(self, settings: Settings) -> None:
        """Check that no other option is at odds with `refork_after`."""
        options = settings.of(Preloading)
        if not options.refork_after:
            return
        where = f"{settings.origin('refork_after')}: workers are forked from one that has served"
        if not options.preload:
            raise ConfigError(f"{where} only with preload = on")
        if is_raw_tcp(settings.target):
            raise ConfigError(f"{where} only if they serve HTTP: other connections may never end")
        if settings.mode == "gevent":
            raise ConfigError(f"{where} not in mode gevent, whose hub and greenlets they would run")
        if settings.mode == "asyncio":
            raise ConfigError(f"{where} not in mode asyncio, whose event loop they would run")


HOOKS = PreloadingHooks()
