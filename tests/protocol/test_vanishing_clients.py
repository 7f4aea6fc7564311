"""Clients that vanish within a request or a response."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from tests.conftest import Serve
from tests.testkit.client import Connection, receive
from tests.testkit.process import children, descriptors
from tests.testkit.server import Server, wait_for

ALONE = True

ECHO = "tests/apps/echo.py"
ANSWERS = "tests/apps/answers.py"


def held(server: Server) -> int:
    """The descriptors that the server and its workers hold."""
    return descriptors(server.process.pid, *children(server.process.pid))


#: Limits that never come: what has vanished must be noticed without them.
PATIENT = ("--header-timeout", "900", "--body-timeout", "900", "--write-timeout", "900")

REQUEST = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"x" * 50_000


@pytest.mark.parametrize("how", [Connection.close, Connection.reset])
def test_client_vanishes_mid_request(serve: Serve, how: Callable[[Connection], None]) -> None:
    server = serve(ECHO, *PATIENT)
    assert server.get("/").status == 200
    before = held(server)
    for length in (0, 1, 20, 60, 1_000, 50_000):
        for _ in range(20):
            connection = server.connect()
            connection.send(REQUEST[:length])
            how(connection)
        assert server.get("/").status == 200
        wait_for(lambda: held(server) <= before, f"the end of those of {length}")
    assert "ran POST /x" not in server.log(), "half a request was served"


@pytest.mark.each_mode
@pytest.mark.parametrize("how", [Connection.close, Connection.reset])
def test_client_vanishes_mid_response(serve: Serve, how: Callable[[Connection], None]) -> None:
    server = serve(ANSWERS, *PATIENT)
    assert server.get("/one").status == 200
    before = held(server)
    for read, path in product((0, 1, 100_000), ("/large", "/large_generated")):
        for _ in range(5):
            connection = server.connect()
            # A second request waits behind the first: nobody is left to answer it to.
            connection.send_request("GET", path)
            connection.send_request("GET", path)
            receive(connection, read)
            how(connection)
        assert server.get("/one").body == b"hello"
        wait_for(lambda: held(server) <= before, f"the end of those of {path}")


def test_the_log_says_that_a_client_left_before_the_end(serve: Serve) -> None:
    server = serve("tests/apps/faulty.py", *PATIENT, "--log-level", "info")
    for path in ("/endless", "/endless_write"):
        with server.connect() as connection:
            connection.send_request("GET", f"{path}/0.01,1?a")
            assert connection.socket.recv(100_000).startswith(b"HTTP/1.1 200 OK")
        server.wait_log(f" GET {path}/0.01,1?a: the client left before the end of the response\n")
