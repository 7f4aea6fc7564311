"""Messages with file descriptors over a Unix socket (SCM_RIGHTS, unix(7))."""

from __future__ import annotations

import sys

from poorhttp.process.c_socket import socket


def send(channel: socket.socket, data: bytes, fd: int) -> None:
    """Send a message with a descriptor; an OSError if the other end is closed, or full."""
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, fd.to_bytes(4, sys.byteorder))
    channel.sendmsg([data], [rights])


def receive(channel: socket.socket, size: int) -> tuple[bytes, list[int]]:
    """Wait for a message and its descriptors; the message is empty at end of file.

    The descriptors are close-on-exec.
    """
    data, rights, _, _ = channel.recvmsg(size, 64, socket.MSG_CMSG_CLOEXEC)
    return data, [int.from_bytes(raw[:4], sys.byteorder) for _, _, raw in rights]
