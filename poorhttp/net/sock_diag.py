"""Lists sockets by netlink (sock_diag(7)).

Reading `/proc/net/tcp` would take seconds while thousands of connections come and go.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from poorhttp.process.c_socket import socket

#: Of `linux/netlink.h`, `linux/sock_diag.h` and `linux/inet_diag.h`.
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
REQUEST_DUMP, ERROR = 0x301, 2
INET_DIAG_INFO = 2

#: Of `net/tcp_states.h`.
ESTABLISHED, SYN_RECV, CLOSE_WAIT, LISTEN = 1, 3, 8, 10

#: Where `tcpi_last_data_recv` lies in `struct tcp_info`.
LAST_DATA_RECV = 52


def tcp_sockets(states: int) -> Iterator[tuple[int, int, int, bool]]:
    """Return the TCP sockets in these states (a bit for each), of IPv4 and IPv6.

    Of each: its local port, unread bytes, milliseconds since the last data came, and whether a
    process has it; otherwise it is in an accept queue.

    Raises:
        OSError: netlink cannot be used.
    """
    for family in (socket.AF_INET, socket.AF_INET6):
        info = 1 << INET_DIAG_INFO - 1
        request = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, info, 0, states)
        for message in dump(request):
            port = int.from_bytes(message[4:6], "big")
            (size,) = struct.unpack_from("=I", message, 56)
            (inode,) = struct.unpack_from("=I", message, 68)
            tcp_info = attribute(message[72:], INET_DIAG_INFO)
            silent = struct.unpack_from("=I", tcp_info, LAST_DATA_RECV) if tcp_info else (0,)
            yield port, size, silent[0], inode != 0


def dump(request: bytes) -> Iterator[bytes]:
    """Send a dump request, and yield the messages of the answer without their headers."""
    kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
    netlink = socket.socket(socket.AF_NETLINK, kind, NETLINK_SOCK_DIAG)
    try:
        head = struct.pack("=IHHII", 16 + len(request), SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, 0, 0)
        netlink.send(head + request)
        while True:
            data, at = netlink.recv(1 << 16), 0
            while at < len(data):
                length, kind = struct.unpack_from("=IH", data, at)
                if kind == ERROR:
                    (number,) = struct.unpack_from("=i", data, at + 16)
                    raise OSError(-number, os.strerror(-number))
                if kind != SOCK_DIAG_BY_FAMILY:
                    return
                yield data[at + 16 : at + length]
                at += length + 3 & ~3
    finally:
        netlink.close()


def attribute(data: bytes, wanted: int) -> bytes:
    """Return the content of an attribute; empty if there is none."""
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if kind == wanted:
            return data[at + 4 : at + length]
        at += max(length, 4) + 3 & ~3
    return b""
