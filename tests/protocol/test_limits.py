"""Limits of time and size over real connections, and responses beyond them."""

from __future__ import annotations

import os
import resource
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.testkit.client import HANG, Connection
from tests.testkit.process import descriptors, limited
from tests.testkit.server import Server, wait_for

ALONE = True

ECHO = "tests/apps/echo.py"
ANSWERS = "tests/apps/answers.py"

#: A deadline that passes during a test, in seconds.
SOON = "0.5"
HEAD = b"GET / HTTP/1.1\r\nHost: a\r\n"
PATIENT = ("--header-timeout=900", "--body-timeout=900", "--keepalive-timeout=900")
BODY_OF_9 = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx"


# Time: the core's tests have what counts for each limit (core/reactor/tests/serving.rs).


@pytest.mark.parametrize(
    ("option", "sent", "statuses"),
    [
        ("--header-timeout", b"", []),
        ("--header-timeout", HEAD, [408]),
        ("--header-timeout", HEAD + b"\r\n" + HEAD, [200, 408]),
        ("--body-timeout", BODY_OF_9, [408]),
        ("--keepalive-timeout", HEAD + b"\r\n", [200]),
    ],
)
def test_deadlines(serve: Serve, option: str, sent: bytes, statuses: list[int]) -> None:
    """A client is told of one within its message, and of no other."""
    server = serve(ECHO, *PATIENT, option, SOON)
    with server.connect() as connection:
        connection.send(sent)
        assert [connection.response().status for _ in statuses] == statuses
        assert connection.rest() == b""
    assert "ran POST" not in server.log()


@pytest.mark.each_mode
def test_reader_that_takes_nothing(serve: Serve) -> None:
    server = serve(ANSWERS, "--write-timeout", SOON)
    with server.connect() as connection:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.send_request("GET", "/large_generated")
        server.wait_log("does not read its response")
        assert server.get("/one").status == 200
        assert len(connection.rest()) < 5_000_000


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
