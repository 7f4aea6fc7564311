"""A TCP handler whose fault the client's first line selects: exceptions, hangs, long output."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

#: What was kept from being closed.
KEPT: list[socket.socket] = []

#: More than all buffers on the way hold.
LARGE = 20_000_000

VERSION = Path(os.environ["VERSION_FILE"]).read_text() if "VERSION_FILE" in os.environ else ""


def handler(sock: socket.socket, address: Any) -> None:
    """Do what the first line says."""
    line = b""
    while not line.endswith(b"\n"):
        octet = sock.recv(1)
        if not octet:
            return
        line += octet
    WAYS[line.strip().decode()](sock, address)


def tell(sock: socket.socket, address: Any) -> None:
    """Say who is connected to whom, and how."""
    socket_is = (type(sock).__module__, int(sock.family), sock.getblocking())
    sock.sendall(repr((os.getpid(), VERSION, *socket_is, address)).encode())


def fault(sock: socket.socket, address: Any) -> None:
    """Begin to answer, and fail."""
    sock.sendall(b"some of ")
    raise RuntimeError("the answer is lost")


def leave(sock: socket.socket, address: Any) -> None:
    """Want the process to end."""
    raise SystemExit(7)


def complain(sock: socket.socket, address: Any) -> None:
    """Fail with somebody else's connection."""
    raise ConnectionResetError("a database has gone")


def elsewhere(sock: socket.socket, address: Any) -> None:
    """Wait too long, but not for the client."""
    raise TimeoutError("a database takes its time")


def late(sock: socket.socket, address: Any) -> None:
    """Do not wait long for the client."""
    sock.settimeout(0.01)
    sock.recv(1)


def wait(sock: socket.socket, address: Any) -> None:
    """Say so, and wait for a client as long as it likes; then say that this has ended."""
    sock.sendall(b"waiting")
    sock.recv(1)  # here
    (Path(os.environ["NOTES"]) / f"{address[1]}").write_text("ended in good order")


def compute(sock: socket.socket, address: Any) -> None:
    sock.sendall(b"computing")
    while True:  # here
        pass  # here


def swallow(sock: socket.socket, address: Any) -> None:
    """Never end, whatever is raised."""
    sock.sendall(b"swallowing")
    while True:
        try:
            while True:
                time.sleep(0.001)
        except BaseException:
            continue


def keep(sock: socket.socket, address: Any) -> None:
    """Keep the socket, and one more like it."""
    KEPT.extend([sock, sock.dup()])
    sock.sendall(b"kept")


def kept(sock: socket.socket, address: Any) -> None:
    """Tell what has become of those: the descriptor of the first, and whether more can be sent."""
    first, other = KEPT
    try:
        other.sendall(b"more")
        result = "sent"
    except OSError as error:
        result = type(error).__name__
    other.close()
    KEPT.clear()
    sock.sendall(f"{first.fileno()} {result}".encode())


def large(sock: socket.socket, address: Any) -> None:
    """Send a lot, and hear nothing of what the client says meanwhile."""
    sock.sendall(b"." * LARGE)


def unblocked(sock: socket.socket, address: Any) -> None:
    """Leave the socket in another state than it was in."""
    sock.setblocking(False)
    sock.send(b"unblocked")


def fork(sock: socket.socket, address: Any) -> None:
    """Come back to the server in a child as well."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        sock.sendall(b"parent")


def die(sock: socket.socket, address: Any) -> None:
    os.kill(os.getpid(), 9)


WAYS = {
    way.__name__: way
    for way in (
        tell, fault, leave, complain, elsewhere, late, wait, compute, swallow, keep, kept,
        large, unblocked, fork, die,
    )
}  # fmt: skip
