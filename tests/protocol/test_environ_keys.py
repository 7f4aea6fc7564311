"""Keys of the environ: those of docs/reference/environ.md; names chosen by clients are not kept."""

from __future__ import annotations

import re
import secrets
from typing import Any

import pytest

from tests.conftest import Serve
from tests.testkit.client import Connection
from tests.testkit.server import ROOT, Server

ALONE = True

#: Fields of a request with names that nobody else has sent.
JUNK = 60

PAGE = (ROOT / "docs/reference/environ.md").read_text(encoding="utf-8")
#: Each key of the page with its example.
KEYS = dict(re.findall(r"^\| `([^`]+)` \| (.*?) \| ", PAGE, re.M))
#: Keys of requests over TLS, and of those that ask for another protocol.
OTHERS = {"HTTPS", "SSL_PROTOCOL", "poorhttp.upgrade"}
#: Keys whose values differ from run to run.
CHANGING = {"SERVER_PORT", "REMOTE_PORT", "SERVER_SOFTWARE", "HTTP_HOST", "HTTP_X_REQUEST_ID"}


def send_junk(connection: Connection, path: str, length: int) -> dict[str, Any]:
    """What the application says of a request with new names, of about that many bytes."""
    junk = [f"Junk-{secrets.token_hex(length // 2 - 2)}: 1" for _ in range(JUNK)]
    response = connection.request("GET", path, *junk)
    assert response.status == 200
    told: dict[str, Any] = response.json()
    assert told["junk"] == JUNK
    return told


@pytest.fixture
def server(serve: Serve) -> Server:
    """A server with one thread that runs the application, because a cache belongs to a thread."""
    return serve("tests/apps/keys.py", "--workers", "1", "--threads", "1")


def test_names_from_the_wire_are_not_interned(server: Server) -> None:
    with server.connect() as connection:
        for length in (40, 500):
            assert send_junk(connection, "/interned", length)["interned"] == 0


def test_junk_does_not_fill_the_cache_for_good(server: Server) -> None:
    with server.connect() as connection:
        for _ in range(10):
            send_junk(connection, "/", 40)
        connection.request("GET", "/", "X-Known: 1")
        assert connection.request("GET", "/again", "X-Known: 1").json()["same"]


def test_the_page_has_each_key(serve: Serve) -> None:
    app = "tests/apps/environ_texts.py"
    server = serve(app, "--request-id", "--mount", f"/shop={app}")
    with server.connect() as connection:
        fields = ("X-Two: a", "X-Two: b", "Content-Type: text/plain")
        told = connection.request("POST", "/shop/c%C3%A4rt?x=1", *fields, body=b"hello").json()
    assert set(told) == set(KEYS) - OTHERS
    assert told["SERVER_PORT"] == f"'{server.port}'"
    assert told["SERVER_SOFTWARE"] == f"'poorhttp/{server.version}'"
    assert told["HTTP_HOST"] == "'test'"
    for key, example in KEYS.items():
        if key in told and key not in CHANGING and example.startswith("`"):
            assert f"`{told[key]}`" == example, key
