"""The daytime protocol (RFC 867): a line with date and time, whatever the client says."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket


def handler(sock: socket.socket, address: Any) -> None:
    """Tell the time, UTC, in the form that the RFC suggests first."""
    sock.sendall(time.strftime("%A, %B %d, %Y %H:%M:%S-UTC\r\n", time.gmtime()).encode("ascii"))
