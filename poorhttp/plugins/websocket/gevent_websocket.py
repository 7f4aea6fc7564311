"""`wsgi.websocket` as gevent-websocket gives it to applications, on the socket of an upgrade.

The package makes it in a request handler of gevent's own server. Here its check of the handshake
and its class `WebSocket` are used without that server. The answer to the handshake is sent at the
first use, so an application that ignores the WebSocket answers as always.
"""

from __future__ import annotations

import socket
from logging import getLogger
from typing import Any

from geventwebsocket.handler import WebSocketHandler
from geventwebsocket.websocket import WebSocket


class OfferedWebSocket(WebSocket):
    """A WebSocket before its first use. `closed` is asked before each message, and by loops."""

    __slots__ = ()

    @property
    def closed(self) -> bool:
        """Whether it is closed; it is not, as its handshake is answered now."""
        self.handler.accept()
        closed: bool = self.closed
        return closed

    @closed.setter
    def closed(self, value: bool) -> None:
        WebSocket.closed.__set__(self, value)

    def __del__(self) -> None:
        """Do nothing: it was not used."""


class Handshake(WebSocketHandler):
    """The package's handler without a server: it is its own `server`, `rfile` and `socket`."""

    def __init__(self, environ: dict[str, Any], upgraded: socket.socket, application: Any) -> None:
        """Check the handshake; on success `websocket` is in the environ."""
        self.environ = environ
        self.request_version = environ["SERVER_PROTOCOL"]
        self.application = application
        self.server = self.rfile = self
        self.socket = self
        self.upgraded = upgraded
        self.head = b""
        self.clients: dict[Any, Any] = {}
        self.upgrade_websocket()
        if "wsgi.websocket" in environ:
            self.websocket.__class__ = OfferedWebSocket

    def start_response(self, status: str, headers: list[tuple[str, str]], *_: object) -> None:
        """Keep the answer to the handshake until the WebSocket is used."""
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers), "", ""]
        self.head = "\r\n".join(lines).encode("latin-1")

    def accept(self) -> None:
        """Answer the handshake."""
        if type(self.websocket) is OfferedWebSocket:
            self.websocket.__class__ = WebSocket
            self.upgraded.sendall(self.head)
            self.file = self.upgraded.makefile("rb", -1)

    def read(self, size: int) -> bytes:
        """Read from the client, as `rfile`."""
        self.accept()
        return self.file.read(size)

    def sendall(self, data: bytes) -> None:
        """Send to the client, as `socket`."""
        self.accept()
        self.upgraded.sendall(data)

    logger = getLogger("geventwebsocket")


def offer(environ: dict[str, Any], upgraded: socket.socket, application: Any) -> None:
    """Put `wsgi.websocket` into the environ, if the request is a valid handshake."""
    Handshake(environ, upgraded, application)


def end(environ: dict[str, Any]) -> None:
    """Close the WebSocket when the application has returned."""
    websocket: Any = environ.get("wsgi.websocket")
    if type(websocket) is WebSocket and not websocket.closed:
        websocket.close()
    environ["wsgi.websocket"] = None
