"""Limits of time and of descriptors over real connections."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from tests.conftest import Serve
from tests.testkit.server import Server

ALONE = True

ECHO = "tests/apps/echo.py"

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
    server = serve("tests/apps/answers.py", "--write-timeout", SOON)
    with server.connect() as connection:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.send_request("GET", "/large_generated")
        server.wait_log("does not read its response")
        assert server.get("/one").status == 200
        assert len(connection.rest()) < 5_000_000


def descriptors(most: int) -> tuple[str, ...]:
    """A launcher of a server that may have so many; this process may need more."""
    return "prlimit", f"--nofile={most}:"


def test_descriptors_run_out(mode: str) -> None:
    """It stops accepting, says so once, serves those it has, and goes on when there is room."""
    with ExitStack() as stack:
        # More than there are descriptors, so that it is those that run out.
        few = Server(ECHO, mode, "--max-connections", "1000", launcher=descriptors(64))
        server = stack.enter_context(few)
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
        server = stack.enter_context(Server(ECHO, mode, launcher=descriptors(256)))
        for number in range(600):
            connection = stack.enter_context(server.connect())
            assert connection.request("GET", f"/{number}").status == 200
        assert "have to wait" not in server.log()
