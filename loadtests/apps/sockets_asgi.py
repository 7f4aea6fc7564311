"""Echoes WebSocket messages as an ASGI application: the counterpart of `sockets.py`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from loadtests.apps.sockets import BODY


async def application(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Echoes on a WebSocket; answers other requests shortly."""
    if scope["type"] == "http":
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(BODY))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": BODY})
        return
    await send({"type": "websocket.accept"})
    while (event := await receive())["type"] != "websocket.disconnect":
        if event["type"] == "websocket.receive":
            back = {key: event[key] for key in ("text", "bytes") if event.get(key) is not None}
            await send({"type": "websocket.send", **back})
