"""Limits of time and size over real connections, and responses beyond them."""

from __future__ import annotations

import os
import resource
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.testkit.client import HANG, Closed, Connection
from tests.testkit.process import children, descriptors, limited
from tests.testkit.server import Server, wait_for

ECHO = "tests/apps/echo.py"
ANSWERS = "tests/apps/answers.py"

#: A deadline that passes during a test, in seconds.
SOON = "0.2"
QUICK = ("--header-timeout", SOON, "--body-timeout", SOON)
#: Bytes a second that nobody keeps up.
FAST = "1000000000"


def drip(connection: Connection, octets: bytes) -> None:
    """Send `octets` one by one, again and again, until the server says something."""
    while True:
        for octet in octets:
            if select.select([connection.socket], [], [], 0.005)[0]:
                return
            try:
                connection.send(bytes([octet]))
            except ConnectionError:
                return


# Time


@pytest.mark.parametrize("first", [b"GET /", b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "])
def test_dripping_head(serve: Serve, first: bytes) -> None:
    """The limit counts from the first octet, however regularly others follow."""
    with serve(ECHO, *QUICK).connect() as connection:
        connection.send(first)
        drip(connection, b"1")
        assert connection.response().status == 408
        assert connection.at_end()


@pytest.mark.parametrize("begin", [b"G", b"GET / HTTP/1.1\r\nHost: a\r\n"])
def test_head_on_a_used_connection(serve: Serve, begin: bytes) -> None:
    with serve(ECHO, *QUICK).connect() as connection:
        assert connection.request("GET", "/").status == 200
        connection.send(begin)
        assert connection.response().status == 408
        assert connection.at_end()


def test_silence(serve: Serve) -> None:
    """From the beginning, or between requests: the connection is closed without a word."""
    with serve(ECHO, *QUICK).connect() as connection, pytest.raises(Closed):
        connection.response()
    with serve(ECHO, "--keepalive-timeout", SOON).connect() as connection:
        assert connection.request("GET", "/").status == 200
        assert connection.at_end()


@pytest.mark.parametrize(
    ("framing", "octets"),
    [
        ("Content-Length: 1000000", b"x"),
        ("Content-Length: 1000000", b""),
        ("Transfer-Encoding: chunked", b"1\r\nx\r\n"),
        ("Transfer-Encoding: chunked", b""),
        # Octets of framing are no progress.
        ("Transfer-Encoding: chunked", b"1;extension=long\r\nx\r\n"),
    ],
)
def test_dripping_body(serve: Serve, framing: str, octets: bytes) -> None:
    """Or one that stops behind its beginning."""
    server = serve(ECHO, *QUICK)
    with server.connect() as connection:
        connection.send(f"POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n".encode())
        if octets:
            drip(connection, octets)
        else:
            connection.send(b"5\r\nx")
        assert connection.response().status == 408
        assert connection.at_end()
    assert "ran POST" not in server.log()


def test_steady_body(serve: Serve) -> None:
    """Slow, but at the rate: it may take many times the deadline."""
    # Longer than a busy machine pauses, and not as long as the whole body takes.
    server = serve(ECHO, "--body-timeout", "1.5", "--min-rate", "1")
    with server.connect() as connection:
        connection.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n")
        for _ in range(20):
            select.select([], [], [], 0.1)
            connection.send(b"x")
        assert connection.response().json()["body"] == "x" * 20


@pytest.mark.each_mode
@pytest.mark.parametrize("path", ["/large", "/large_generated"])
def test_reader_that_takes_nothing(serve: Serve, path: str) -> None:
    server = serve(ANSWERS, "--write-timeout", SOON)
    with server.connect() as connection:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        seen = len(server.log())
        connection.send_request("GET", path)
        wait_for(lambda: "does not read its response" in server.log()[seen:], "the deadline")
        assert server.get("/one").status == 200
        assert len(connection.rest()) < 5_000_000


def test_reader_that_sips(serve: Serve) -> None:
    server = serve(ANSWERS, "--write-timeout", SOON, "--min-rate", FAST)
    with server.connect() as connection:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.send_request("GET", "/large")
        taken = 0
        try:
            while data := connection.socket.recv(1000):
                taken += len(data)
                select.select([], [], [], 0.001)
        except ConnectionResetError:
            pass
        assert taken < 5_000_000


# Connections


@pytest.fixture
def narrow(mode: str) -> Iterator[Server]:
    """A server of one process that has room for four connections.

    It has one thread: of two, the one with the earlier answer may put its connection back later.
    No other test shares it: it may still hold a connection of that test, which has just ended, and
    close one that waits instead.
    """
    options = ("--max-connections", "4", "--workers", "1", "--threads", "1")
    # A head that waits keeps its place, however slow the machine is.
    with Server(ECHO, mode, *options, "--header-timeout", "600") as server:
        yield server


def test_oldest_idle_connection_makes_room(narrow: Server) -> None:
    connections = []
    for number in range(12):
        connection = narrow.connect()
        assert connection.request("GET", f"/{number}").status == 200
        connections.append(connection)
        if number >= 4:
            assert connections[number - 4].at_end()
    for connection in connections[8:]:
        assert connection.request("GET", "/still").status == 200
        connection.close()


def test_503_when_all_are_busy(narrow: Server) -> None:
    busy = [narrow.connect() for _ in range(4)]
    for connection in busy:
        connection.send(b"GET /busy HTTP/1.1\r\n")
    for _ in range(200):
        with narrow.connect() as connection:
            answer = connection.response()
            assert answer.status == 503
            assert answer.get("Retry-After") == "1"
            assert answer.get("Connection") == "close"
            assert connection.at_end()
    for connection in busy:
        connection.send(b"Host: a\r\n\r\n")
        assert connection.response().status == 200
    assert narrow.get("/after").status == 200
    assert narrow.log().count("(max_connections)") == 1


# Descriptors


def test_descriptors_run_out(mode: str) -> None:
    """It stops accepting, says so once, serves those it has, and goes on when there is room."""
    with ExitStack() as stack:
        with limited(resource.RLIMIT_NOFILE, 64):
            # More than there are descriptors, so that it is those that run out.
            server = stack.enter_context(Server(ECHO, mode, "--max-connections", "1000"))
        first = stack.enter_context(server.connect())
        assert first.request("GET", "/first").status == 200
        many = [stack.enter_context(server.connect()) for _ in range(150)]
        server.wait_log("connections have to wait to be accepted")
        for number in range(20):
            assert first.request("GET", f"/{number}").status == 200
        for connection in many:
            connection.close()
        with server.connect() as connection:
            assert connection.request("GET", "/after").status == 200
        assert server.log().count("connections have to wait") <= server.workers


def test_as_many_as_descriptors_allow(mode: str) -> None:
    """By default there is always a descriptor left for the application: idle ones go first."""
    with ExitStack() as stack:
        with limited(resource.RLIMIT_NOFILE, 256):
            server = stack.enter_context(Server(ECHO, mode))
        for number in range(600):
            connection = stack.enter_context(server.connect())
            assert connection.request("GET", f"/{number}").status == 200
        assert "have to wait" not in server.log()


def test_body_that_cannot_be_opened(mode: str) -> None:
    """Its descriptor is closed, although nobody got it."""
    with Server("tests/apps/unopened.py", mode, "--workers", "1", tracebacks=True) as server:
        (worker,) = children(server.process.pid)
        with server.connect() as connection:
            assert connection.request("POST", "/", body=b"x" * 1000).status == 200
            held = descriptors(worker)
            for _ in range(20):
                assert connection.request("POST", "/", body=b"x" * 1_100_000).status == 500
            # The server may open something of its own meanwhile, but not as many; the thread that
            # writes bodies closes them.
            wait_for(lambda: descriptors(worker) < held + 20, "the end of the temporary files")


# The disk


BODY = bytes(range(256)) * 8192


def test_no_place_for_bodies(mode: str, tmp_path: Path) -> None:
    """A large body is answered with 507 and a line in the log; nothing else happens."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    with Server(ECHO, mode, env={"TMPDIR": str(folder)}) as server:
        folder.rmdir()
        for _ in range(3):
            assert refused(server) == 507
        server.wait_log("a request body cannot be stored", 3)
        assert server.request("POST", "/small", body=b"x" * 1000).status == 200


def test_full_disk(mode: str, tmp_path: Path) -> None:
    """As above, on a disk that fills up while the body comes (here: a limit of the file size)."""
    with limited(resource.RLIMIT_FSIZE, 600_000):
        small = ("--body-buffer-size", "256K")
        server = Server(ECHO, mode, *small, env={"TMPDIR": str(tmp_path)})
    with server:
        held = descriptors(server.process.pid)
        for _ in range(5):
            assert refused(server) == 507
        server.wait_log("a request body cannot be stored", 5)
        assert server.request("POST", "/small", body=b"x" * 300_000).status == 200
        assert os.listdir(tmp_path) == []
        wait_for(lambda: descriptors(server.process.pid) <= held, "the end of temporary files")


def refused(server: Server) -> int:
    """The status that a large body gets. The server may answer before it has come."""
    with Connection(("127.0.0.1", server.port)) as connection:
        connection.socket.settimeout(HANG)
        connection.send_request("POST", "/large", f"Content-Length: {len(BODY)}")
        with suppress(ConnectionError):
            connection.send(BODY)
        return connection.response().status
