"""A server that switches protocols as for a WebSocket, and echoes what it then receives."""

from __future__ import annotations

import base64
import hashlib
import re
import socket

#: RFC 6455 section 1.3.
PROOF = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def handler(connection: socket.socket, address: object) -> None:
    """Answer one request; if it wants a WebSocket, be an echo from there on."""
    head = b""
    while b"\r\n\r\n" not in head:
        more = connection.recv(65536)
        if not more:
            return
        head += more
    key = re.search(rb"(?i)\r\nsec-websocket-key: *([^\r]+)", head)
    if key is None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        return
    proof = base64.b64encode(hashlib.sha1(key[1] + PROOF).digest())
    connection.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + proof + b"\r\n\r\n"
    )
    while more := connection.recv(65536):
        connection.sendall(more)
