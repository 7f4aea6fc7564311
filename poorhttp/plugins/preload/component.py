"""Preloading in the main process: services with `preload` have their workers forked by another."""

from __future__ import annotations

from collections.abc import Sequence

from poorhttp.plugins.native import adopt_orphans
from poorhttp.plugins.preload.options import Preloading
from poorhttp.plugins.preload.spawner import PreloadingSpawner
from poorhttp.supervisor.component import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.worker.service import Service


class Preload(Component):
    """Has a preloader for each service that asks for one."""

    def spawners(self, services: Sequence[Service]) -> Sequence[PreloadingSpawner] | None:
        """Return one for each service with `preload`, unless its application is loaded already."""
        wanted = [
            service
            for service in services
            if service.settings.of(Preloading).preload and service.application is None
        ]
        if not wanted:
            return None
        # The workers are those of a child that ends at once.
        adopt_orphans()
        return [PreloadingSpawner(service) for service in wanted]
