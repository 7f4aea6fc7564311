"""Counts connections with data that no worker has read, by netlink (sock_diag(7)).

Imported where it is needed: it takes memory.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress

from poorhttp.net.listener import Listener
from poorhttp.net.sock_diag import dump, tcp_sockets
from poorhttp.process.c_socket import socket

#: Of `net/tcp_states.h`.
ESTABLISHED, CLOSE_WAIT, LISTEN = 1, 8, 10

#: Of `linux/inet_diag.h`, and where `tcpi_last_data_recv` lies in `struct tcp_info`.
INET_DIAG_INFO, LAST_DATA_RECV = 2, 52

#: Of `linux/unix_diag.h`.
UNIX_DIAG_NAME, UNIX_DIAG_RQLEN = 0, 4
SHOW_NAME, SHOW_RQLEN = 1, 16

#: States of a connection that may have unread data.
OPEN = 1 << ESTABLISHED | 1 << CLOSE_WAIT


def tcp_connections() -> Iterator[tuple[int, int, int, bool]]:
    """Yield the TCP connections that may have unread data, of IPv4 and IPv6.

    Of each: its local port, unread bytes, milliseconds since the last data came, and whether a
    process has it; otherwise it is in an accept queue.

    Raises:
        OSError: netlink cannot be used.
    """
    for port, message in tcp_sockets(OPEN, 1 << INET_DIAG_INFO - 1):
        (size,) = struct.unpack_from("=I", message, 56)
        (inode,) = struct.unpack_from("=I", message, 68)
        tcp_info = _attribute(message[72:], INET_DIAG_INFO)
        silent = struct.unpack_from("=I", tcp_info, LAST_DATA_RECV) if tcp_info else (0,)
        yield port, size, silent[0], inode != 0


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
        name = _attribute(message[16:], UNIX_DIAG_NAME)
        length = _attribute(message[16:], UNIX_DIAG_RQLEN)
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
        for port, size, silent, _ in (tcp_connections() if ports else ())
        if size and port in ports
    ]
    queues = unix_queues() if names else ()
    more = sum(count for name, count, _ in queues if name.rstrip(b"\0") in names)
    return len(times) + more, max(times, default=0.0)


def unread(listeners: Iterable[Listener]) -> int:
    """Return how many connections to these listeners have unread data; only those accepted.

    0 if netlink cannot be used.
    """
    ports, names = _places(listeners)
    total = 0
    with suppress(OSError):
        found = tcp_connections() if ports else ()
        total = sum(size > 0 and accepted and port in ports for port, size, _, accepted in found)
        # The kernel lists no connection of an accept queue.
        queues = unix_queues(1 << ESTABLISHED) if names else ()
        total += sum(count for name, count, _ in queues if name.rstrip(b"\0") in names)
    return total


def _places(listeners: Iterable[Listener]) -> tuple[set[int], set[bytes]]:
    """Return the ports, and the names of Unix sockets, of listeners that are open."""
    sockets = [each.socket for each in listeners if each.fileno() >= 0]
    unix = [each for each in sockets if each.family == socket.AF_UNIX]
    ports = {each.getsockname()[1] for each in sockets if each.family != socket.AF_UNIX}
    return ports, {os.fsencode(each.getsockname()).rstrip(b"\0") for each in unix}


def _attribute(data: bytes, wanted: int) -> bytes:
    """Return the content of an attribute; empty if there is none."""
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if kind == wanted:
            return data[at + 4 : at + length]
        at += max(length, 4) + 3 & ~3
    return b""
