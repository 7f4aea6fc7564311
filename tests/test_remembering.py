"""A head that repeats itself is not parsed again: nothing of one request may show in another."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.client import Response
    from tests.conftest import Serve

ECHO = "tests/apps/echo.py"

HEADS = {
    "plain": b"GET /plain HTTP/1.1\r\nHost: a\r\n\r\n",
    "longer": b"GET /plain/longer HTTP/1.1\r\nHost: a\r\n\r\n",
    "query": b"GET /plain?q=1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "cookie": b"GET /plain HTTP/1.1\r\nHost: a\r\nCookie: secret=1\r\n\r\n",
    "other cookie": b"GET /plain HTTP/1.1\r\nHost: a\r\nCookie: secret=2\r\n\r\n",
    "no body": b"POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    "body": b"POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody",
    "chunked": (
        b"POST /form HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
    ),
    "server": b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "old": b"GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("at_once", [False, True])
def test_requests_in_any_order(serve: Serve, seed: int, at_once: bool) -> None:
    """Each answer is that of the same request on a connection of its own."""
    server = serve(ECHO)
    expected = {}
    for name, request in HEADS.items():
        with server.connect() as connection:
            connection.send(request)
            expected[name] = described(connection.response())
    chance = random.Random(seed)
    names = []
    for _ in range(40):
        names += [chance.choice(list(HEADS))] * chance.choice([1, 1, 2, 5])
    with server.connect() as connection:
        if at_once:
            connection.send(b"".join(HEADS[name] for name in names))
        for name in names:
            if not at_once:
                connection.send(HEADS[name])
            assert described(connection.response()) == expected[name], name


def test_an_environ_that_was_changed(serve: Serve) -> None:
    """Frameworks write into the environ: the next request must not see it."""
    server = serve("tests/apps/scribbler.py")
    with server.connect() as connection:
        for _ in range(6):
            assert connection.request("GET", "/").body == b"clean"


def described(response: Response) -> object:
    """What must be the same: status and, from our application, all of the environ but the port."""
    if response.status == 204:
        return response.status
    told = response.json()
    del told["environ"]["REMOTE_PORT"]
    return response.status, told
