"""Lists sockets by netlink (sock_diag(7)).

Reading `/proc/net/tcp` would take seconds while thousands of connections come and go.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator

from poorhttp.process.c_socket import socket

#: Of `linux/netlink.h`, `linux/sock_diag.h` and `net/tcp_states.h`.
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
REQUEST_DUMP, ERROR = 0x301, 2
SYN_RECV = 3

#: Families of addresses. For each the kernel reads its whole table, which may take 4 ms.
FAMILIES = (socket.AF_INET, socket.AF_INET6)


def tcp_sockets(
    states: int, info: int = 0, families: Iterable[int] = FAMILIES
) -> Iterator[tuple[int, bytes]]:
    """Yield the local port of each TCP socket in these states (a bit for each), and its message.

    `info` are the bits of further attributes (`idiag_ext`).

    Raises:
        OSError: netlink cannot be used.
    """
    for family in families:
        request = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, info, 0, states)
        for message in dump(request):
            yield int.from_bytes(message[4:6], "big"), message


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
