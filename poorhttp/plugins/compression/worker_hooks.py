"""Gives the options of compression to the reactor of a worker."""

from __future__ import annotations

from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError
from poorhttp.plugins.compression.options import Compression
from poorhttp.plugins.native import not_built
from poorhttp.worker.plugin_hooks import WorkerHooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CompressionHooks(WorkerHooks):
    """Used if `compress` is on."""

    def check(self, settings: Settings) -> None:
        """Load the encoders, which workers that are forked have then."""
        _encoders(settings)

    def reactor_arguments(self, settings: Settings) -> dict[str, Any]:
        """Return the codings with their levels, and which responses are compressed."""
        options = settings.of(Compression)
        return {
            "compression": (
                options.compress,
                options.compress_level,
                options.compress_types,
                options.compress_min_size,
                _encoders(settings),
            )
        }


def _encoders(settings: Settings) -> object:
    """Return the encoders, whose extension module is loaded with the first call."""
    try:
        from poorhttp.plugins.compression._codings import encoders
    except ModuleNotFoundError as error:
        raise ConfigError(f"{settings.origin('compress')}: {not_built(error)}") from None
    return encoders


HOOKS = CompressionHooks()
