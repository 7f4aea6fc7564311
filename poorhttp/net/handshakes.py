"""Lets pending TCP handshakes complete before a listening socket is closed.

The kernel resets a connection whose handshake has begun when its listening socket is closed, and
the client cannot know whether its request was processed. So the kernel first drops new handshakes,
and the main process waits for those that have begun, before workers accept for the last time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress

from poorhttp import logs
from poorhttp.net.listener import Listener
from poorhttp.process.c_socket import socket

#: Of `asm-generic/socket.h`; Python does not name it.
SO_ATTACH_FILTER = 26

#: A socket filter (socket(7)) that drops SYN segments: code, jump if true, jump if false, operand.
_ONLY_CONNECTED = (
    (0x30, 0, 0, 13),  # A = the byte of the TCP header with the flags
    (0x54, 0, 0, 0x12),  # A = A & (SYN | ACK)
    (0x15, 0, 1, 0x02),  # if A == SYN, the next one, else the one behind
    (0x06, 0, 0, 0),  # drop
    (0x06, 0, 0, 0xFFFFFFFF),  # keep
)

#: Seconds that handshakes may take: a round trip to the other side of the world.
TIMEOUT = 0.3

#: Seconds between two checks.
PAUSE = 0.005

#: The error of a kernel without netlink has been logged.
_error_logged = False


def drain_handshakes(listeners: Iterable[Listener], timeout: float = TIMEOUT) -> None:
    """Drop new handshakes with these sockets, and wait for those that have begun.

    The kernel drops the SYN of a new client, and refuses the one that it repeats a second later.
    Connections in the accept queue stay. Sockets that another process has opened, which may listen
    on them again, are left as they are.
    """
    until = time.monotonic() + timeout
    ours = [listener.socket for listener in listeners if _is_ours(listener)]
    ports = {sock.getsockname()[1] for sock in ours}
    # Clients of IPv4 at a socket of IPv6 are of one or the other, which depends on the kernel.
    families: set[int] = {socket.AF_INET, *(sock.family for sock in ours)}
    # Before the filter: the check takes a millisecond, and a client whose SYN is dropped waits for
    # a second. Mostly there is no handshake; from the same machine, one takes no time at all.
    pending = _handshakes_pending(ports, families)
    for sock in ours:
        with suppress(OSError):
            _drop_syn(sock)
    while pending and time.monotonic() < until:
        time.sleep(PAUSE)
        pending = _handshakes_pending(ports, families)


def _is_ours(listener: Listener) -> bool:
    """Whether it is an open TCP socket that this server has opened."""
    if listener.fileno() < 0 or listener.socket.family == socket.AF_UNIX:
        return False
    # With a protocol: uwsgi+fd:3.
    return listener.owned and not listener.key[0].rpartition("+")[2].startswith("fd:")


def _drop_syn(sock: socket.socket) -> None:
    # Imported only here, to keep the main process small.
    import struct
    from array import array

    program = array("B", b"".join(struct.pack("=HBBI", *one) for one in _ONLY_CONNECTED))
    address, size = program.buffer_info()
    # The kernel copies what a `struct sock_fprog` refers to.
    fprog = struct.pack("@HP", size // 8, address)
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, fprog)


def _handshakes_pending(ports: set[int], families: set[int]) -> bool:
    """Whether a handshake with one of these ports has begun and not ended."""
    if not ports:
        return False
    # Imported only here, to keep the main process small.
    from poorhttp.net.sock_diag import SYN_RECV, tcp_sockets

    global _error_logged  # noqa: PLW0603
    try:
        return any(port in ports for port, _ in tcp_sockets(1 << SYN_RECV, 0, families))
    except OSError as error:
        if not _error_logged:
            _error_logged = True
            logs.write(
                "info",
                "the kernel cannot be asked about connections that are being set up (AF_NETLINK: "
                f"{error.strerror}), so a socket is given up {TIMEOUT:g} s later; with systemd, "
                "add AF_NETLINK to RestrictAddressFamilies=",
            )
        # There may be one: wait as long as a handshake takes.
        return True
