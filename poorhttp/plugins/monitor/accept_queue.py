"""Length of the accept queue of each address, as the kernel tells it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress

from poorhttp.net.listener import Listener
from poorhttp.process.c_socket import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.monitor.admin.model import AcceptQueue

#: Where `tcpi_unacked` and `tcpi_sacked` lie in `struct tcp_info` (tcp(7)): of a listening socket,
#: the length of its accept queue, and the backlog.
WAITING, LIMIT = 24, 28


def accept_queues(listeners: Iterable[Listener]) -> list[AcceptQueue]:
    """Return the accept queue of each address; with `reuse_port`, the sum of those of its workers.

    An address of which the kernel does not tell is left out: a Unix socket where netlink cannot be
    used, or one that is closed.
    """
    found: dict[str, AcceptQueue] = {}
    of_unix: dict[bytes, tuple[int, int]] | None = None
    for listener in listeners:
        if listener.fileno() < 0:
            continue
        queue: tuple[int, int] | None = None
        with suppress(OSError):
            if listener.socket.family != socket.AF_UNIX:
                queue = _of_tcp(listener.socket)
            else:
                of_unix = _of_unix() if of_unix is None else of_unix
                name = os.fsencode(listener.socket.getsockname())
                queue = of_unix.get(name.rstrip(b"\0"))
        if queue is not None:
            one = found.setdefault(listener.url, {"url": listener.url, "waiting": 0, "limit": 0})
            one["waiting"] += queue[0]
            one["limit"] += queue[1]
    return list(found.values())


def _of_tcp(sock: socket.socket) -> tuple[int, int]:
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, LIMIT + 4)
    waiting, limit = (int.from_bytes(info[at : at + 4], sys.byteorder) for at in (WAITING, LIMIT))
    return waiting, limit


def _of_unix() -> dict[bytes, tuple[int, int]]:
    """Return length and limit of the queue of each Unix socket that listens, by its name."""
    # They take memory.
    from poorhttp.plugins.monitor import unread as sockets

    try:
        return {
            name.rstrip(b"\0"): (waiting, limit)
            for name, waiting, limit in sockets.unix_queues(1 << sockets.LISTEN)
        }
    except OSError:
        return {}
