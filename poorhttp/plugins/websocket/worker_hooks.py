"""What a worker calls to offer the connection of a request to the application."""

from __future__ import annotations

from poorhttp.plugins.websocket import protocol_upgrade
from poorhttp.worker.plugin_hooks import WorkerHooks


class ProtocolUpgrades(WorkerHooks):
    """Loaded with the first request that asks for another protocol."""

    offer_upgrade = staticmethod(protocol_upgrade.offer)
    end_upgraded = staticmethod(protocol_upgrade.end)


HOOKS = ProtocolUpgrades()
