"""Counts connections with data that no worker has read, by netlink (sock_diag(7)).

Imported where it is needed: it takes memory.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator

from poorhttp.net.listener import Listener
from poorhttp.net.sock_diag import (
    CLOSE_WAIT,
    ESTABLISHED,
    LISTEN,
    attribute,
    dump,
    tcp_sockets,
)
from poorhttp.process.c_socket import socket

#: Of `linux/unix_diag.h`.
UNIX_DIAG_NAME, UNIX_DIAG_RQLEN = 0, 4
SHOW_NAME, SHOW_RQLEN = 1, 16

#: States of a connection that may have unread data.
OPEN = 1 << ESTABLISHED | 1 << CLOSE_WAIT


def unix_queues(states: int = 1 << ESTABLISHED | 1 << LISTEN) -> Iterator[tuple[bytes, int, int]]:
    """Return names of Unix sockets in these states, how many clients wait there, and a limit.

    For a connection that is 1 if it has unread data; for a listener, its accept queue, whose limit
    is the last number.

    Raises:
        OSError: netlink cannot be used.
    """
    show = SHOW_NAME | SHOW_RQLEN
    request = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, states, 0, show, 0, 0)
    for message in dump(request):
        name = attribute(message[16:], UNIX_DIAG_NAME)
        length = attribute(message[16:], UNIX_DIAG_RQLEN)
        if name and length:
            count, limit = struct.unpack_from("=II", length)
            yield name, count if message[2] == LISTEN else min(count, 1), limit


def waiting(listeners: Iterable[Listener]) -> tuple[int, float]:
    """Return how many connections to these listeners have unread data, and the longest wait.

    Connections in the accept queue are included. For Unix sockets no time is known.

    Raises:
        OSError: netlink cannot be used.
    """
    ports, names = _places(listeners)
    times = [
        silent / 1000
        for port, size, silent, _ in tcp_sockets(OPEN if ports else 0)
        if size and port in ports
    ]
    queues = unix_queues() if names else ()
    more = sum(count for name, count, _ in queues if name.rstrip(b"\0") in names)
    return len(times) + more, max(times, default=0.0)


def unread(listeners: Iterable[Listener]) -> int:
    """Return how many connections to these listeners have unread data; only those accepted.

    Raises:
        OSError: netlink cannot be used.
    """
    ports, names = _places(listeners)
    found = tcp_sockets(OPEN if ports else 0)
    of_tcp = sum(size > 0 and accepted and port in ports for port, size, _, accepted in found)
    # The kernel lists no connection of an accept queue.
    queues = unix_queues(1 << ESTABLISHED) if names else ()
    return of_tcp + sum(count for name, count, _ in queues if name.rstrip(b"\0") in names)


def _places(listeners: Iterable[Listener]) -> tuple[set[int], set[bytes]]:
    """Return the ports, and the names of Unix sockets, of listeners that are open."""
    sockets = [each.socket for each in listeners if each.fileno() >= 0]
    unix = [each for each in sockets if each.family == socket.AF_UNIX]
    ports = {each.getsockname()[1] for each in sockets if each.family != socket.AF_UNIX}
    return ports, {os.fsencode(each.getsockname()).rstrip(b"\0") for each in unix}
