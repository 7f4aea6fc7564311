"""Keys of the environ: names chosen by clients are neither interned nor kept."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from tests.conftest import Serve
from tests.testkit.client import Connection
from tests.testkit.server import Server

ALONE = True

APP = "tests/apps/keys.py"
#: Fields in each of them.
FIELDS = 60


def junk(length: int) -> list[str]:
    """Names that nobody has sent before, of about that many bytes."""
    return [f"Junk-{secrets.token_hex(length // 2 - 2)}" for _ in range(FIELDS)]


def send_junk(connection: Connection, path: str, length: int) -> dict[str, Any]:
    """What the application says of a request with such names."""
    response = connection.request("GET", path, *(f"{name}: 1" for name in junk(length)))
    assert response.status == 200
    told: dict[str, Any] = response.json()
    assert told["junk"] == FIELDS
    return told


@pytest.fixture
def server(serve: Serve) -> Server:
    """A server with one thread that runs the application, because a cache belongs to a thread."""
    return serve(APP, "--workers", "1", "--threads", "1")


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
