"""The socket pair over which the main process and one of its children send messages of one byte.

End of file means that the other process is gone. The worker's side is
`core/reactor/src/channel.rs`. The first message of a worker that another process has forked
is `HERE`, with which the kernel tells its process ID (SCM_CREDENTIALS, unix(7)).
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from poorhttp._core import forget_fd, note_fd
from poorhttp.errors import visible
from poorhttp.process import fd_passing
from poorhttp.process.c_socket import socket

# To a worker

PING = b"?"
DRAIN = b"d"
UNDRAIN = b"u"
RETIRE = b"r"  # finish its requests, and end
PROMOTE = b"p"  # the same, and become the process that forks workers
DETACH = b"H"  # retire, and leave idle connections to the successor
END_LONG_POLLS = b"l"
RENEW = b"T"  # with a descriptor of what a transport uses anew, `poorhttp/net/transport.py`
# These repeat SIGTERM, SIGINT and SIGUSR1, whose handlers the application may have replaced.
STOP = b"s"
QUICK_STOP = b"q"
REOPEN_LOGS = b"o"

# From a worker

SERVING = b"+"
BROKEN = b"x"  # it serves an error page, because the application cannot be loaded
AGAIN = b"A"  # the application cannot be loaded, perhaps because an older version runs
PONG = b"."
RECYCLE = b"m"  # it has begun `max_requests` requests
ACTIVE = b"a"  # it has begun a request: `max_rss` is to be checked
FULL = b"f"  # all threads are busy, and nobody checks for that (`WorkerHandle.full`)
STUCK = b"t"  # a request cannot be interrupted
REFORK = b"k"  # workers may be forked from it
PROMOTED = b"P"  # it has finished its requests, and waits for the listening sockets
REPLACED = b"g"  # the application has replaced the handler of a signal to stop
OWN_USR1 = b"1"  # a library handles SIGUSR1, past Python: logs are reopened by the message only
#: It cannot begin: all that follows is the reason; from one that has served, only what is received
#: with it.
FAILED = b"e"
#: The application has replaced threads by greenlets, by their package; empty if it is not known.
GREENLETS = {"gevent": b"G", "eventlet": b"E", "": b"U"}
HERE = b"h"  # the kernel tells who has sent it

#: Bytes of a reason, at most, and of what is received at once: a reason with messages before it.
LONGEST_REASON = 2000
LONGEST_RECEIVED = 1 << 12

#: Bytes of `struct ucred` (unix(7)): process, user and group ID, 4 each.
CREDENTIALS = 12

#: The open channels. A child closes them all: as long as any process has an end open, its peer sees
#: no end of file.
_opened: set[ControlChannel] = set()


class ControlChannel:
    """The main process's end.

    Attributes:
        child_fd: descriptor of the child's end, until the child has it.
    """

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        for end in (ours, theirs):
            end.setblocking(False)
        self.socket = ours
        self._receiving_stopped = False
        self._has_failed = False
        self._has_served = False
        self._reason = b""
        self.child_fd = theirs.detach()
        for fd in (ours.fileno(), self.child_fd):
            note_fd(fd)
        _opened.add(self)

    def expect_here(self) -> None:
        """Have the kernel tell who sends `HERE`; before the child has its end."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)

    def fileno(self) -> int:
        """Return the descriptor of the main process's end; -1 when it is closed."""
        return self.socket.fileno()

    @property
    def is_readable(self) -> bool:
        """Whether the child may still send something."""
        return not self._receiving_stopped and self.fileno() >= 0

    def close_child_end(self) -> None:
        """Close the child's end in the main process, after the fork."""
        forget_fd(self.child_fd)
        os.close(self.child_fd)
        self.child_fd = -1

    def send(self, message: bytes) -> None:
        """Send a message; lost if the child is gone or has not read for very long."""
        with suppress(OSError):
            self.socket.send(message)

    def send_fd(self, message: bytes, fd: int) -> bool:
        """Send a message with a descriptor; return `False` if that fails."""
        try:
            fd_passing.send(self.socket, message, fd)
        except OSError:
            return False
        return True

    def receive(self) -> bytes:
        """Return the messages that have arrived; close the channel at end of file."""
        if not self.is_readable:
            return b""
        try:
            received = self.socket.recv(LONGEST_RECEIVED)
        except BlockingIOError:
            return b""
        except OSError:
            received = b""
        if not received:
            self.close()
        if not self._has_failed:
            received, failed, reason = received.partition(FAILED)
            self._has_served |= SERVING in received
            # A worker that has served may send it by mistake of its application, and goes on: what
            # comes later are messages again.
            self._has_failed = bool(failed) and not self._has_served
        else:
            received, reason = b"", received
        self._reason = (self._reason + reason)[:LONGEST_REASON]
        return received

    @property
    def reason(self) -> str:
        """Why the child cannot begin, on one line; empty if it has not said so."""
        # Code of the application runs in the child, and may have sent anything.
        return visible(" ".join(self._reason.decode("utf-8", "replace").split()))

    def sender(self) -> tuple[int, int] | None:
        """Return the process and the user ID of the process that has sent `HERE`, by the kernel.

        `None`: nobody has sent anything yet. Close the channel, and return 0 and 0, if the other
        end is closed, or something else was sent.
        """
        try:
            # Room for the credentials only: no descriptor is received.
            size = socket.CMSG_SPACE(CREDENTIALS)
            message, received, _, _ = self.socket.recvmsg(1, size, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return None
        except OSError:
            message, received = b"", []
        for _, kind, data in received:
            if message == HERE and kind == socket.SCM_CREDENTIALS and len(data) == CREDENTIALS:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
                pid, uid, _ = (
                    int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, 12, 4)
                )
                return pid, uid
        self.close()
        return 0, 0

    def stop_receiving(self) -> bytes:
        """Make further sends of the child fail; return the messages that have arrived."""
        self._receiving_stopped = True
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RD)
            return self.socket.recv(64)
        return b""

    def close(self) -> None:
        """Close this end; it may be closed already."""
        forget_fd(self.socket.fileno())
        self.socket.close()
        _opened.discard(self)


def report_failure(fd: int, reason: str) -> None:
    """Tell the main process, in a child with this end of a channel, why the child cannot begin."""
    with suppress(OSError):
        os.write(fd, FAILED + reason.encode("utf-8", "replace")[:LONGEST_REASON])


def close_all() -> None:
    """Close all ends of the main process, in a child that has just been forked."""
    for channel in list(_opened):
        channel.close()
