"""Free ports of this machine."""

from __future__ import annotations

import socket

LOOPBACK = "127.0.0.1"
"""Where servers listen that are on no host of their own; their commands and files say so."""


def free_port() -> int:
    """Reserve a port for a minute, on the host where this thread is.

    A connection in TIME_WAIT keeps the kernel from giving the port to anybody who asks for any;
    only a server that sets SO_REUSEADDR, as all of them do, can listen on it.
    """
    with socket.create_server((LOOPBACK, 0)) as listener:
        with socket.create_connection(listener.getsockname()):
            # Whoever closes first keeps the connection.
            listener.accept()[0].close()
        port: int = listener.getsockname()[1]
        return port
