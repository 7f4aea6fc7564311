"""The order in which responses of one connection of HTTP/2 are sent (RFC 9218)."""

from __future__ import annotations

import socket
import time
from itertools import groupby
from pathlib import Path

import pytest

from loadtests.clients.http2_frames import PRIORITY_UPDATE, frame
from tests.support.certificate import certificate
from tests.support.http2_client import Client
from tests.testkit.server import Server, alone

LARGE, SMALL = 4_000_000, 1_500_000


def client(server: Server, *, secure: bool = False) -> Client:
    """A connection whose socket takes little of what is not read."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
    sock.connect(("127.0.0.1", server.port_of("https") if secure else server.port))
    if not secure:
        return Client(sock)
    context = certificate().client_context()
    context.set_alpn_protocols(["h2"])
    return Client(context.wrap_socket(sock, server_hostname="localhost"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files, and beside them a certificate."""
    (tmp_path / "large").write_bytes(bytes(LARGE))
    (tmp_path / "small").write_bytes(bytes(SMALL))
    certificate().write(tmp_path / "pem")
    (tmp_path / "pem").chmod(0o600)
    return tmp_path


@pytest.mark.parametrize("mode", ["single", "threading", "gevent"])
def test_priorities(mode: str, folder: Path) -> None:
    """What is more urgent goes first, and of two that are not incremental the first request."""
    options = ("--http2=on", *alone(mode))
    with Server(f"static:{folder}", mode, *options) as server, client(server) as made:
        first = made.begin("/large", ("priority", "u=5"))
        made.until(lambda: first.body)
        second = made.begin("/large", ("priority", "u=5"))
        urgent = made.begin("/small", ("priority", "u=1"))
        made.until(lambda: urgent.status)
        assert len(made.whole(urgent).body) == SMALL
        assert len(made.whole(first).body) == LARGE
        assert len(made.whole(second).body) == LARGE
        runs = [number for number, _ in groupby(made.order)]
        assert runs == [first.number, urgent.number, first.number, second.number]


@pytest.mark.parametrize("secure", [False, True], ids=["h2c", "tls"])
@pytest.mark.parametrize("mode", ["single", "threading"])
def test_a_priority_that_changes(mode: str, secure: bool, folder: Path) -> None:
    """By PRIORITY_UPDATE, before a response has begun, and in the middle of one."""
    bind = ("127.0.0.1:0", "https://127.0.0.1:0")
    options = ("--http2=on", *alone(mode), "--tls-certificate", str(folder / "pem"))
    with (
        Server(f"static:{folder}", mode, *options, bind=bind) as server,
        client(server, secure=secure) as made,
    ):
        first = made.begin("/large", ("priority", "u=4"))
        made.until(lambda: first.body)
        early = made.h2.get_next_available_stream_id()
        update(made, early, "u=1")
        second = made.begin("/large", ("priority", "u=6"))
        assert second.number == early
        third = made.begin("/large", ("priority", "u=6"))
        made.until(lambda: second.body)
        update(made, third.number, "u=0")
        assert len(made.whole(third).body) == LARGE
        assert not second.is_over
        assert len(made.whole(second).body) == LARGE
        assert not first.is_over
        assert len(made.whole(first).body) == LARGE
        runs = [number for number, _ in groupby(made.order)]
        numbers = [stream.number for stream in (first, second, third)]
        assert runs == [*numbers, *reversed(numbers[:2])]


def update(made: Client, stream: int, priority: str) -> None:
    payload = stream.to_bytes(4, "big") + priority.encode()
    made.socket.sendall(frame(PRIORITY_UPDATE, 0, 0, payload))


def test_incremental_responses_take_turns(folder: Path) -> None:
    options = ("--http2=on", "--workers=1")
    with Server(f"static:{folder}", "threading", *options) as server, client(server) as made:
        streams = [made.begin("/large", ("priority", "u=2, i")) for _ in range(3)]
        made.until(lambda: all(stream.body for stream in streams))
        made.whole(streams[0])
        for stream in streams[1:]:
            assert len(stream.body) > LARGE // 2
            assert len(made.whole(stream).body) == LARGE


def test_who_waits_for_others_is_not_too_slow(folder: Path) -> None:
    """A client reads one response after the other, each as slowly as its line is."""
    options = ("--http2=on", "--workers=1", "--write-timeout=3")
    with Server(f"static:{folder}", "threading", *options) as server, client(server) as made:
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
