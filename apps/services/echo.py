"""The echo protocol (RFC 862): what comes goes back, until the client has finished."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket


def handler(sock: socket.socket, address: Any) -> None:
    """Send back everything."""
    while data := sock.recv(65536):
        sock.sendall(data)
