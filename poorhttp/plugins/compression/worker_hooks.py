"""Gives the options of compression to the reactor of a worker."""

from __future__ import annotations

from poorhttp.config.settings import Settings
from poorhttp.plugins.compression.options import Compression
from poorhttp.worker.plugin_hooks import WorkerHooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CompressionHooks(WorkerHooks):
    """Used if `compress` is on."""

    def reactor_arguments(self, settings: Settings) -> dict[str, Any]:
        """Return the codings with their levels, and which responses are compressed."""
        options = settings.of(Compression)
        return {
            "compression": (
                options.compress,
                options.compress_level,
                options.compress_types,
                options.compress_min_size,
            )
        }


HOOKS = CompressionHooks()
