"""The HTTP client of the tests, which is the strict one of the lab, and the limit of a wait."""

from __future__ import annotations

from loadtests.clients.strict import BadResponse, Closed, Connection, Response
from loadtests.measure.waiting import HANG

__all__ = ["HANG", "BadResponse", "Closed", "Connection", "Response"]
__all__ += ["chunked", "receive", "receive_until"]


def chunked(*chunks: bytes) -> bytes:
    """A body in these chunks."""
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


def receive(connection: Connection, size: int) -> bytes:
    """The next `size` bytes of a connection, whatever they are."""
    received = b""
    while len(received) < size:
        more = connection.socket.recv(size - len(received))
        assert more, f"the connection ended behind {received[-100:]!r}"
        received += more
    return received


def receive_until(connection: Connection, *texts: bytes) -> bytes:
    """What comes on a connection until each of `texts` has come."""
    received = b""
    while not all(text in received for text in texts):
        more = connection.socket.recv(65_536)
        assert more, f"the connection ended behind {received[-100:]!r}"
        received += more
    return received
