"""How those who are connecting fare when a server gives up its listening sockets.

The kernel resets whoever has begun a handshake with a socket that is closed: with a request under
way that nobody may send again. So nobody may begin one any more, and all that have begun must have
ended, before those who accept do so for the last time.
"""

from __future__ import annotations

import time
from contextlib import suppress

from poorhttp import logs
from poorhttp.process.c_socket import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from poorhttp.net.listener import Listener

#: Of `asm-generic/socket.h`; Python does not name it.
SO_ATTACH_FILTER = 26

#: A socket filter (socket(7)) that drops the segments by which a connection would begin: code, jump
#: if true, jump if false, operand.
_ONLY_CONNECTED = (
    (0x30, 0, 0, 13),  # A = the octet of the TCP header that has the flags
    (0x54, 0, 0, 0x12),  # A = A & (SYN | ACK)
    (0x15, 0, 1, 0x02),  # if A == SYN, the next one, else the one behind
    (0x06, 0, 0, 0),  # drop
    (0x06, 0, 0, 0xFFFFFFFF),  # keep
)

#: Seconds that handshakes may take: the round trip to the other side of the world.
TIMEOUT = 0.3

#: Seconds between two looks at them.
PAUSE = 0.005

#: `_tell_refusal` has done so.
_told_refusal = False


def drain_handshakes(listeners: Iterable[Listener], timeout: float = TIMEOUT) -> None:
    """Have nobody new connect, and wait for those who were about to.

    The kernel drops the SYN of whoever comes; when he repeats it, he is refused and goes elsewhere.
    Those who wait in the queues still come in. Sockets that somebody else has opened will be
    listened on again, and are left as they are.
    """
    until = time.monotonic() + timeout
    ours = [listener.socket for listener in listeners if _is_ours(listener)]
    ports = {sock.getsockname()[1] for sock in ours}
    # A look takes a millisecond, so nobody is kept out yet: he would try again, or elsewhere, only
    # a second later. Mostly nobody is found; from the same machine it takes no time at all.
    anybody = _are_connecting(ports)
    for sock in ours:
        with suppress(OSError):
            _close_to_new(sock)
    while anybody and time.monotonic() < until:
        time.sleep(PAUSE)
        anybody = _are_connecting(ports)


def _is_ours(listener: Listener) -> bool:
    """Whether it is open, of TCP, and was opened by us."""
    if listener.fileno() < 0 or listener.socket.family == socket.AF_UNIX:
        return False
    return listener.ours and not listener.key[0].startswith("fd:")


def _close_to_new(sock: socket.socket) -> None:
    # Only now: the main process is light.
    import struct
    from array import array

    program = array("B", b"".join(struct.pack("=HBBI", *one) for one in _ONLY_CONNECTED))
    address, octets = program.buffer_info()
    # The kernel copies what a `struct sock_fprog` refers to.
    fprog = struct.pack("@HP", octets // 8, address)
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, fprog)


def _are_connecting(ports: set[int]) -> bool:
    """Whether a handshake with one of these ports has begun and not ended.

    Not by `/proc/net/tcp`: while thousands come and go, reading that takes seconds.
    """
    if not ports:
        return False
    # Only now: the main process is light.
    from poorhttp.net.sock_diag import SYN_RECV, tcp_sockets

    try:
        return any(each.port in ports for each in tcp_sockets(1 << SYN_RECV))
    except OSError as error:
        _tell_refusal(error)
        # They may be: then the time that a handshake takes is waited for.
        return True


def _tell_refusal(error: OSError) -> None:
    """Log, once, that the kernel cannot be asked."""
    global _told_refusal  # noqa: PLW0603
    if not _told_refusal:
        _told_refusal = True
        logs.write(
            "info",
            "the kernel cannot be asked for connections that are being set up (AF_NETLINK: "
            f"{error.strerror}), so a socket is given up {TIMEOUT:g} s later; with systemd, "
            "RestrictAddressFamilies= takes AF_NETLINK",
        )
