"""A made-up server: a socket whose connections are served in threads of their own, until closed."""

from __future__ import annotations

import socket
import threading
from abc import ABC, abstractmethod


class Accepting(ABC):
    """Accepts connections at a port of its own, and counts them."""

    def __init__(self) -> None:
        self.connections = 0
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @abstractmethod
    def serve(self, connection: socket.socket) -> None:
        """Answer what comes on a connection."""

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def close(self) -> None:
        """Close the port, and all connections."""
        for opened in (self._listener, *self._open):
            opened.close()
