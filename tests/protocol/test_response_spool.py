"""Responses spooled to temporary files for slow clients, also without space for them."""

from __future__ import annotations

import os
import resource
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.apps.long import BLOCK, BLOCKS
from tests.testkit.client import Connection
from tests.testkit.process import children, limited
from tests.testkit.server import Server, wait_for

LONG = "tests/apps/long.py"
REASON = "a response cannot be spooled"


def ask(server: Server, path: str) -> Connection:
    """A client that has asked, and reads nothing."""
    client = server.connect()
    client.send_request("GET", path)
    return client


def spooled(server: Server, folder: Path) -> int:
    """The bytes that the workers of `server` have in files in `folder`."""
    total = 0
    for pid in children(server.process.pid):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                if os.readlink(link).startswith(str(folder)):
                    total += link.stat().st_size
    return total


def test_full_disk(mode: str, tmp_path: Path) -> None:
    """The answer arrives whole: its application waits for the client."""
    with limited(resource.RLIMIT_FSIZE, 600_000):
        server = Server(LONG, mode, "--temp-dir", str(tmp_path))
    with server:
        client = server.connect()
        for path in ("/pieces", "/chunks", "/written", "/list"):
            client.send_request("GET", path)
            server.wait_log(REASON)
            assert client.response().body == BLOCK * BLOCKS, path
            assert client.request("GET", path).body == BLOCK * BLOCKS, path
        assert server.log().count(REASON) == 1
        server.wait_log("File too large")
        assert "cut short" not in server.log()
        assert "the client left" not in server.log()


def test_nothing_on_the_disk(mode: str, tmp_path: Path) -> None:
    """With `spool_limit = 0` the application waits, and that is no news."""
    with Server(LONG, mode, "--temp-dir", str(tmp_path), "--spool-limit", "0") as server:
        client = ask(server, "/pieces")
        assert not client.at_end()
        assert "made /pieces" not in server.log()
        assert spooled(server, tmp_path) == 0
        assert client.response().body == BLOCK * BLOCKS
        server.wait_log("made /pieces")
        assert REASON not in server.log()


@pytest.mark.each_mode
def test_spooled(mode: str, tmp_path: Path) -> None:
    """Where there is room nobody waits for a client that reads nothing."""
    with Server(LONG, mode, "--temp-dir", str(tmp_path)) as server:
        client = ask(server, "/pieces")
        server.wait_log("made /pieces")
        assert spooled(server, tmp_path) > 0
        assert server.get("/list").status == 200
        assert client.response().body == BLOCK * BLOCKS
        wait_for(lambda: spooled(server, tmp_path) == 0, "the end of the file")


def test_budget_of_a_worker(mode: str, tmp_path: Path) -> None:
    options = ("--temp-dir", str(tmp_path), "--spool-total", "4M", "--threads", "4")
    with Server(LONG, mode, *options) as server:
        clients = [ask(server, path) for path in ("/pieces", "/chunks", "/list")]
        server.wait_log(REASON)
        server.wait_log("spool_total")
        assert spooled(server, tmp_path) <= 4 << 20
        # Nobody else is held up.
        assert server.request("HEAD", "/pieces").status == 200
        for client in clients:
            assert client.response().body == BLOCK * BLOCKS
        assert server.log().count(REASON) == 1


def test_client_that_is_given_up(mode: str, tmp_path: Path) -> None:
    """It is the server that ends the connection, so nobody says that the client has left."""
    options = ("--temp-dir", str(tmp_path), "--spool-limit", "0", "--write-timeout", "0.2")
    with Server(LONG, mode, *options) as server:
        client = ask(server, "/pieces")
        server.wait_log("the client does not read its response")
        assert len(client.rest()) < len(BLOCK) * BLOCKS
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert "made /pieces" not in server.log()
        assert "the client left" not in server.log()
        server.ended()
