"""Gives the options of HTTP/2 to the reactor of a worker."""

from __future__ import annotations

from poorhttp.config.settings import Settings
from poorhttp.plugins.http2.options import Http2
from poorhttp.worker.plugin_hooks import WorkerHooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Http2Hooks(WorkerHooks):
    """Used unless `http2` is off."""

    def reactor_arguments(self, settings: Settings) -> dict[str, Any]:
        """Return which clients may speak it, how many streams, and the windows."""
        options = settings.of(Http2)
        windows = options.http2_stream_window, options.http2_connection_window
        return {"http2": (options.http2, options.http2_max_streams, *windows)}


HOOKS = Http2Hooks()
