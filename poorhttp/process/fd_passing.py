"""Words over a line between processes, and descriptors with them (unix(7))."""

from __future__ import annotations

import sys

from poorhttp.process.c_socket import socket


def send(line: socket.socket, words: bytes, fd: int) -> None:
    """Send words and a descriptor.

    Raises:
        OSError: the other end is closed, or has no room.
    """
    right = (socket.SOL_SOCKET, socket.SCM_RIGHTS, fd.to_bytes(4, sys.byteorder))
    line.sendmsg([words], [right])


def receive(line: socket.socket, room: int) -> tuple[bytes, list[int]]:
    """Wait for words, with the descriptors that came with them; nothing if that end is closed.

    Programs that this process starts do not inherit them.
    """
    words, rights, _, _ = line.recvmsg(room, 64, socket.MSG_CMSG_CLOEXEC)
    return words, [int.from_bytes(data[:4], sys.byteorder) for _, _, data in rights]
