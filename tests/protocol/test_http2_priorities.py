"""The order in which responses of one connection of HTTP/2 are sent (RFC 9218)."""

from __future__ import annotations

import socket
import time
from itertools import groupby
from pathlib import Path

import pytest

from tests.support.http2_client import Client
from tests.testkit.server import Server

LARGE, SMALL = 4_000_000, 1_500_000


def client(server: Server) -> Client:
    """A connection whose socket takes little of what is not read."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
    sock.connect(("127.0.0.1", server.port))
    return Client(sock)


@pytest.mark.parametrize("mode", ["single", "threading", "gevent"])
def test_priorities(mode: str, tmp_path: Path) -> None:
    """What is more urgent goes first, and of two that are not incremental the first request."""
    for name, size in (("large", LARGE), ("small", SMALL)):
        (tmp_path / name).write_bytes(bytes(size))
    options = ("--http2=on", "--workers=1")
    with Server(f"static:{tmp_path}", mode, *options) as server, client(server) as made:
        first = made.begin("/large", ("priority", "u=5"))
        made.until(lambda: first.body)
        second = made.begin("/large", ("priority", "u=5"))
        urgent = made.begin("/small", ("priority", "u=1"))
        made.until(lambda: urgent.status)
        assert len(first.body) < LARGE // 2
        assert len(made.whole(urgent).body) == SMALL
        assert len(made.whole(first).body) == LARGE
        assert len(made.whole(second).body) == LARGE
        runs = [number for number, _ in groupby(made.order)]
        assert runs == [first.number, urgent.number, first.number, second.number]


def test_incremental_responses_take_turns(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(LARGE))
    options = ("--http2=on", "--workers=1")
    with Server(f"static:{tmp_path}", "threading", *options) as server, client(server) as made:
        streams = [made.begin("/large", ("priority", "u=2, i")) for _ in range(3)]
        made.until(lambda: all(stream.body for stream in streams))
        made.whole(streams[0])
        for stream in streams[1:]:
            assert len(stream.body) > LARGE // 2
            assert len(made.whole(stream).body) == LARGE


def test_who_waits_for_others_is_not_too_slow(tmp_path: Path) -> None:
    """A client reads one response after the other, each as slowly as its line is."""
    (tmp_path / "large").write_bytes(bytes(LARGE))
    options = ("--http2=on", "--workers=1", "--write-timeout=3")
    with Server(f"static:{tmp_path}", "threading", *options) as server, client(server) as made:
        first = made.begin("/large", ("priority", "u=3"))
        made.until(lambda: first.body)
        second = made.begin("/large", ("priority", "u=3"))
        begun = time.monotonic()
        while time.monotonic() < begun + 5:
            made.receive()
            time.sleep(0.05)
        assert not first.is_over
        assert not second.body
        for stream in (first, second):
            assert len(made.whole(stream).body) == LARGE
