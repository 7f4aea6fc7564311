"""pytest-flask's `live_server`, served by poorhttp: in threads of the tests' process."""

from __future__ import annotations

from pytest_flask.live_server import LiveServer

import poorhttp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def install() -> None:
    """Make poorhttp the server of pytest-flask's fixture."""
    LiveServer.start = _start
    LiveServer.stop = _stop


def _start(server: Any) -> None:
    server.poorhttp = poorhttp.Server(server.app, bind=f"{server.host}:{server.port}")


def _stop(server: Any) -> None:
    # Without a start, the fixture stops it too.
    running: poorhttp.Server | None = vars(server).pop("poorhttp", None)
    if running is not None:
        running.close()
