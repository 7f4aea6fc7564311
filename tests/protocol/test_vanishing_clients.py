"""Clients that vanish or fall silent within a request or a response: aborts, stalls, floods."""

from __future__ import annotations

import socket

import pytest

from tests.conftest import Serve
from tests.testkit.client import HANG, BadResponse, Closed
from tests.testkit.process import children, descriptors
from tests.testkit.server import Server, wait_for

ECHO = "tests/apps/echo.py"
ANSWERS = "tests/apps/answers.py"


# Clients that vanish


def held(server: Server) -> int:
    """The descriptors that the server and its workers hold."""
    return descriptors(server.process.pid, *children(server.process.pid))


#: Limits that never come: what has vanished must be noticed without them.
PATIENT = ("--header-timeout", "900", "--body-timeout", "900", "--write-timeout", "900")

REQUEST = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"x" * 50_000


@pytest.mark.parametrize("length", [0, 1, 20, 60, 1_000, 50_000])
@pytest.mark.parametrize("how", ["close", "reset"])
def test_client_vanishes_mid_request(serve: Serve, length: int, how: str) -> None:
    server = serve(ECHO, *PATIENT)
    assert server.get("/").status == 200
    before = held(server)
    for _ in range(20):
        connection = server.connect()
        connection.send(REQUEST[:length])
        getattr(connection, how)()
    assert server.get("/").status == 200
    wait_for(lambda: held(server) <= before, "as many descriptors as before")
    assert "ran POST /x" not in server.log(), "half a request was served"


@pytest.mark.each_mode
@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize(
    ("path", "read"),
    [
        (path, read)
        for path in ("/large", "/large_generated", "/many_pieces", "/one")
        for read in (0, 1, 100_000)
        # Of the short answers there are not as many octets.
        if (path, read) != ("/one", 100_000)
    ],
)
def test_client_vanishes_mid_response(serve: Serve, path: str, how: str, read: int) -> None:
    server = serve(ANSWERS, *PATIENT)
    assert server.get("/one").status == 200
    before = held(server)
    for _ in range(5):
        connection = server.connect()
        # A second request waits behind the first: nobody is left to answer it to.
        connection.send_request("GET", path)
        connection.send_request("GET", path)
        left = read
        while left > 0 and (data := connection.socket.recv(min(left, 65_536))):
            left -= len(data)
        getattr(connection, how)()
    assert server.get("/one").body == b"hello"
    wait_for(lambda: held(server) <= before, "as many descriptors as before")
    assert "Traceback" not in server.log()


def test_the_log_says_that_a_client_left_before_the_end(serve: Serve) -> None:
    server = serve("tests/apps/faulty.py", *PATIENT, "--log-level", "info")
    for path in ("/endless", "/endless_write"):
        with server.connect() as connection:
            connection.send_request("GET", f"{path}/0.01,1?a")
            assert connection.socket.recv(100_000).startswith(b"HTTP/1.1 200 OK")
        server.wait_log(f" GET {path}/0.01,1?a: the client left before the end of the response\n")


# Clients that fall silent. Each server has one time limit that is short and others that never come.


@pytest.mark.parametrize("sent", [b"G", b"GET / HTTP/1.1\r\nHost: a\r\n"])
def test_silent_in_the_head(serve: Serve, sent: bytes) -> None:
    server = serve(ECHO, "--header-timeout", "0.5", "--body-timeout", "900")
    with server.connect() as connection:
        connection.send(sent)
        assert connection.response().status == 408
        assert connection.at_end()


def test_dripping_head(serve: Serve) -> None:
    """The limit counts from the first octet, however regularly others follow."""
    server = serve(ECHO, "--header-timeout", "0.5", "--body-timeout", "900")
    with server.connect() as connection:
        connection.send(b"GET / HTTP/1.1\r\nHost: a\r\nX-Drip: ")
        connection.socket.settimeout(0.02)
        for _ in range(int(HANG / 0.02)):
            try:
                if connection.socket.recv(1, socket.MSG_PEEK):
                    break
            except TimeoutError:
                connection.send(b"x")
        connection.socket.settimeout(HANG)
        assert connection.response().status == 408


@pytest.mark.parametrize("framing", [b"Content-Length: 10", b"Transfer-Encoding: chunked"])
def test_silent_in_the_body(serve: Serve, framing: bytes) -> None:
    server = serve(ECHO, "--body-timeout", "0.2", "--header-timeout", "900")
    with server.connect() as connection:
        connection.send(b"POST /half HTTP/1.1\r\nHost: a\r\n" + framing + b"\r\n\r\n5\r\nx")
        assert connection.response().status == 408
        assert connection.at_end()
    assert server.get("/").status == 200
    assert "ran POST /half" not in server.log()


def test_idle_between_requests(serve: Serve) -> None:
    server = serve(ECHO, "--keepalive-timeout", "0.2", "--header-timeout", "900")
    with server.connect() as connection:
        assert connection.request("GET", "/").status == 200
        assert connection.at_end(), "an idle connection is closed without a word"


@pytest.mark.each_mode
def test_client_that_does_not_read(serve: Serve) -> None:
    server = serve(ANSWERS, "--write-timeout", "0.2")
    before = held(server)
    connection = server.connect()
    connection.send_request("GET", "/large")
    connection.send_request("GET", "/large")
    # The first octet, so that the connection is known to be in hand; none behind it.
    assert connection.socket.recv(1, socket.MSG_PEEK)
    wait_for(lambda: held(server) <= before, "the end of a connection that is not read")
    # The end of the connection comes before the end of the answer.
    with pytest.raises((BadResponse, Closed)):
        list(map(connection.response, ("GET", "GET")))
    connection.close()
    assert server.get("/one").body == b"hello"
