"""Echoes WebSocket messages with simple-websocket; other requests get a short answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

BODY = b"Echoes WebSocket messages.\n"


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """One thread, or greenlet, for each WebSocket, as flask-sock has it."""
    if environ.get("HTTP_UPGRADE", "").lower() == "websocket":
        return _echo(environ)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(BODY)))])
    return [BODY]


def _echo(environ: dict[str, Any]) -> Iterable[bytes]:
    # Those who only ask for the page do without it.
    from simple_websocket import ConnectionClosed, Server

    websocket = Server.accept(environ)
    try:
        while True:
            websocket.send(websocket.receive())
    except ConnectionClosed:
        pass
    if websocket.mode == "gunicorn":
        # It takes this for the end of the connection.
        raise StopIteration
    return []
