"""The line between the main process and one of its children.

It is a pair of connected sockets, and each octet is a message. To a worker: `PING`, `DRAIN`,
`RETIRE`, `DETACH` (as that, and idle connections are for a successor), `LIVE` (what clients wait
for in parked answers has happened). From a worker: `SERVING`, `BROKEN` (what it
serves is a page that says why the application cannot be loaded), `PONG`, `FULL` (all its threads
have requests, and nobody checks that: `supervisor/saturation.py`), `RECYCLE` (it has begun
`max_requests` requests), `STUCK` (a request in it cannot be interrupted). Its end tells that the
other side is gone. The worker's side is `core/reactor/src/control/channel.rs`.
"""

from __future__ import annotations

import os
from contextlib import suppress

from poorhttp.process.c_socket import socket
from poorhttp.process.fd_passing import send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

PING = b"?"
DRAIN = b"d"
RETIRE = b"r"
DETACH = b"H"
LIVE = b"l"
SERVING = b"+"
BROKEN = b"x"
PONG = b"."
RECYCLE = b"m"
FULL = b"f"
STUCK = b"t"


class ControlChannel:
    """The main process's end.

    Attributes:
        child_fd: descriptor of the child's end, until the child has it.
    """

    #: Those that are open: a child has no business with the lines of its siblings, and the end of a
    #: line would not be seen as long as somebody else has it open.
    opened: ClassVar[set[ControlChannel]] = set()

    def __init__(self) -> None:
        ours, child_fd = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        for end in (ours, child_fd):
            end.setblocking(False)
        self.socket = ours
        #: What is read says nothing about whether the other side is there.
        self._receiving_stopped = False
        self.child_fd = child_fd.detach()
        ControlChannel.opened.add(self)

    def fileno(self) -> int:
        """Return the descriptor of our end; -1 when it is closed."""
        return self.socket.fileno()

    @property
    def is_readable(self) -> bool:
        """Whether something may still be said from the other side."""
        return not self._receiving_stopped and self.fileno() >= 0

    def close_child_end(self) -> None:
        """Close the child's end here, now that the child has it."""
        os.close(self.child_fd)
        self.child_fd = -1

    def send(self, octet: bytes) -> None:
        """Send a message. A child that is gone, or has read nothing for ages, does not matter."""
        with suppress(OSError):
            self.socket.send(octet)

    def send_fd(self, words: str, fd: int) -> bool:
        """Send a line, and a descriptor with it; `False` if that does not work."""
        try:
            send(self.socket, f"{words}\n".encode(), fd)
        except OSError:
            return False
        return True

    def receive(self) -> bytes:
        """Return what has come; at its end it is closed."""
        if not self.is_readable:
            return b""
        try:
            heard = self.socket.recv(64)
        except BlockingIOError:
            return b""
        except OSError:
            heard = b""
        if not heard:
            self.close()
        return heard

    def stop_receiving(self) -> bytes:
        """Let nothing more be said from the other side: that fails there. Return what has come."""
        self._receiving_stopped = True
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RD)
            return self.socket.recv(64)
        return b""

    def close(self) -> None:
        """Close this end; once is enough, more often does no harm."""
        self.socket.close()
        ControlChannel.opened.discard(self)

    @classmethod
    def close_all(cls) -> None:
        """Close all ends of the main process, in a child that has just been forked."""
        for channel in list(cls.opened):
            channel.close()
