"""A process that is forked before it is wanted: for a fork, half of a save's time is too late."""

from __future__ import annotations

import os
from collections.abc import Callable

from poorhttp.process import fork
from poorhttp.process.c_socket import socket
from poorhttp.process.fd_passing import receive, send

#: Octets of an order.
MAX_ORDER = 256


class PreforkedProcess:
    """The process, as the one sees it that has forked it; the main process adopts it.

    It ends when that one does, or has no use for it.

    Attributes:
        pid: its process.
    """

    def __init__(self, run: Callable[[bytes, int], object]) -> None:
        """Fork it. When it is wanted it does nothing but `run`, with an order and a descriptor.

        Raises:
            OSError: there is no room for it.
        """
        self._socket, child_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fork.after_fork_in_child.append(self._socket.close)

        def wait() -> None:
            words, fds = receive(child_socket, MAX_ORDER)
            child_socket.close()
            if not words:
                os._exit(0)
            run(words, fds[0])

        try:
            self.pid = fork.fork_twice(wait)
        except OSError:
            self.close()
            raise
        finally:
            child_socket.close()

    def start(self, words: bytes, fd: int) -> bool:
        """Have it live; `False`: it has died."""
        try:
            send(self._socket, words, fd)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Forget it. Who has not been wanted by now ends."""
        fork.after_fork_in_child.remove(self._socket.close)
        self._socket.close()
