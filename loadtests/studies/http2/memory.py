"""Connections of HTTP/2 that are idle, and streams that wait for content: what they take."""

from __future__ import annotations

import socket
import struct
from contextlib import ExitStack

from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.measure.waiting import patience
from loadtests.servers.running import Running
from loadtests.studies.engine import Trial
from loadtests.studies.http2.scenarios import COUNTED

CONNECTIONS = 200
"""Idle ones, each after a request."""
BUSY, STREAMS = 20, 100
"""Connections with open streams, and the streams of each."""
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, GOAWAY = 0, 1, 4, 6, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PATIENCE = patience(10.0)
_GET, _POST, _HTTP, _ROOT = b"\x82", b"\x83", b"\x86", b"\x84"
_AUTHORITY, _LENGTH = b"\x01\x09localhost", b"\x0f\x0d\x02"
"""Fields in HPACK: of the static table, or literals that no table keeps."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame (RFC 9113 section 4.1)."""
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


class Client:
    """A connection that sends heads, and reads frames up to the answer to a PING."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._received = b""
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0))

    def get(self, stream: int) -> None:
        """A request that is answered by and by."""
        block = _GET + _HTTP + _ROOT + _AUTHORITY
        self.socket.sendall(frame(HEADERS, END_STREAM | END_HEADERS, stream, block))

    def post(self, stream: int) -> None:
        """A request whose 10 bytes do not come."""
        block = _POST + _HTTP + _ROOT + _AUTHORITY + _LENGTH + b"10"
        self.socket.sendall(frame(HEADERS, END_HEADERS, stream, block))

    def end(self, stream: int) -> None:
        """The content of such a request."""
        self.socket.sendall(frame(DATA, END_STREAM, stream, bytes(10)))

    def read(self, ended: int = 0) -> None:
        """Reads until everything that was sent was read, and so many streams have ended."""
        self.socket.sendall(frame(PING, 0, 0, bytes(8)))
        ponged = False
        while not ponged or ended > 0:
            kind, flags = self._frame()
            ponged |= kind == PING and flags == ACK
            ended -= kind in (DATA, HEADERS) and flags & END_STREAM
            if kind == GOAWAY:
                raise ServerFailure("it ends a connection of HTTP/2")

    def _frame(self) -> tuple[int, int]:
        header = self._exactly(9)
        length, kind, flags = struct.unpack("!I", b"\0" + header[:3])[0], header[3], header[4]
        payload = self._exactly(length)
        if kind == SETTINGS and flags != ACK:
            self.socket.sendall(frame(SETTINGS, ACK, 0))
        return kind, flags if payload or kind != PING else 0

    def _exactly(self, count: int) -> bytes:
        while len(self._received) < count:
            if not (piece := self.socket.recv(1 << 16)):
                raise ServerFailure("it closes a connection of HTTP/2")
            self._received += piece
        found, self._received = self._received[:count], self._received[count:]
        return found


def take(trial: Trial) -> str:
    """Opens connections and streams; the memory of each."""
    with ExitStack() as stack:
        running = stack.enter_context(Running(trial.server, COUNTED, core=trial.lab.server_core))
        try:
            return _take(trial, running, stack)
        except OSError as error:
            running.processes()
            raise ServerFailure(f"a connection of HTTP/2 failed: {error}") from None


def _take(trial: Trial, running: Running, stack: ExitStack) -> str:
    def connected(count: int) -> list[Client]:
        clients = [Client(running.port) for _ in range(count)]
        for client in clients:
            stack.callback(client.socket.close)
            client.get(1)
            client.read(1)
        return clients

    def memory() -> int:
        return resources.memory(running.processes()).uss

    for warm in connected(BUSY):
        warm.socket.close()
    begun = memory()
    clients = connected(CONNECTIONS)
    idle = memory()
    for client in clients[:BUSY]:
        for number in range(STREAMS):
            client.post(3 + 2 * number)
        client.read()
    busy = memory()
    for client in clients[:BUSY]:
        for number in range(STREAMS):
            client.end(3 + 2 * number)
        client.read(STREAMS)
    each, streams = (idle - begun) / CONNECTIONS, (busy - idle) / BUSY
    trial.figure("connection", each, "bytes")
    trial.figure("streams", streams, "bytes")
    return f"{each / 1024:.1f} KiB a connection, {streams / 1024:.0f} KiB {STREAMS} streams"
