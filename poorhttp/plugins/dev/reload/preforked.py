"""A process forked in advance, so that a save need not wait for a fork."""

from __future__ import annotations

import os
from collections.abc import Callable

from poorhttp.process import fork
from poorhttp.process.c_socket import socket
from poorhttp.process.fd_passing import receive, send

#: Bytes of an order.
MAX_ORDER = 256


class PreforkedProcess:
    """The process, seen from the fork server. It ends with the fork server, or when it is closed.

    The main process adopts it.
    """

    def __init__(self, run: Callable[[bytes, int], object]) -> None:
        """Fork a process that waits, then calls `run` with an order and a descriptor.

        Raises:
            OSError: it cannot be forked.
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
            fork.fork_twice(wait)
        except OSError:
            self.close()
            raise
        finally:
            child_socket.close()

    def start(self, words: bytes, fd: int) -> bool:
        """Have the process call `run`; `False` if it has ended."""
        try:
            send(self._socket, words, fd)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close the connection; a process that was not started ends."""
        fork.after_fork_in_child.remove(self._socket.close)
        self._socket.close()
