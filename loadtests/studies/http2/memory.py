"""Connections of HTTP/2 that are idle, and streams that wait for content: what they take."""

from __future__ import annotations

from contextlib import ExitStack

from loadtests.clients.http2_connection import Http2Connection
from loadtests.clients.http2_frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    POST,
    frame,
    request,
)
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.servers.application import Application
from loadtests.servers.running import Running
from loadtests.studies.engine import Trial

COUNTED = Application("loadtests/apps", "counted")
CONNECTIONS = 200
"""Idle ones, each after a request."""
BUSY, STREAMS = 20, 100
"""Connections with open streams, and the streams of each."""
TEN_BYTES = POST + b"\x0f\x0d\x0210"
"""The header block of a request whose content has this length, in HPACK."""


def take(trial: Trial) -> str:
    """Opens connections and streams; the memory of each."""
    with ExitStack() as stack:
        running = stack.enter_context(trial.running(COUNTED))
        try:
            return _take(trial, running, stack)
        except OSError as error:
            running.processes()
            raise ServerFailure(f"a connection of HTTP/2 failed: {error}") from None


def _take(trial: Trial, running: Running, stack: ExitStack) -> str:
    def connected(count: int) -> list[Http2Connection]:
        clients = [stack.enter_context(Http2Connection(running.port)) for _ in range(count)]
        for client in clients:
            client.finish(request(1), 1)
            _check(client)
        return clients

    def memory() -> int:
        return resources.memory(running.processes()).uss

    def on_each(kind: int, flags: int, payload: bytes) -> bytes:
        """A frame on each of the open streams of a connection."""
        return b"".join(frame(kind, flags, 3 + 2 * number, payload) for number in range(STREAMS))

    for warm in connected(BUSY):
        warm.socket.close()
    begun = memory()
    clients = connected(CONNECTIONS)
    idle = memory()
    for client in clients[:BUSY]:
        client.exchange(on_each(HEADERS, END_HEADERS, TEN_BYTES))
        client.flush()
        _check(client)
    busy = memory()
    for client in clients[:BUSY]:
        client.finish(on_each(DATA, END_STREAM, bytes(10)), STREAMS)
        _check(client)
    each, streams = (idle - begun) / CONNECTIONS, (busy - idle) / BUSY
    trial.figure("connection", each, "bytes")
    trial.figure("streams", streams, "bytes")
    return f"{each / 1024:.1f} KiB a connection, {streams / 1024:.0f} KiB {STREAMS} streams"


def _check(client: Http2Connection) -> None:
    if client.closed or client.error:
        raise ServerFailure(f"it ends a connection of HTTP/2: {client.error or 'without a word'}")
