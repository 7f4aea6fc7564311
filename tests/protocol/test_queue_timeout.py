"""`queue_timeout`: requests that have waited too long for a thread are refused, and no others."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.http2_client import Client
from tests.testkit.client import Connection
from tests.testkit.server import Server, wait_for

#: In seconds: longer than a busy machine lets a request wait, and shorter than it waits here.
SHORT = 0.3
LONG = 0.2


def one_thread(mode: str, *options: str) -> Server:
    return Server("tests/apps/busy.py", mode, "--workers", "1", "--threads", "1", *options)


def statuses(server: Server, gate: Path, seconds: float = LONG) -> list[int]:
    """Of three requests that wait for so many seconds, each on a connection of its own."""
    holding, kept, *others = (server.connect() for _ in range(4))
    assert kept.request("GET", "/before").status == 200
    holding.send_request("GET", f"/hold?{gate}")
    server.wait_log(f"holds {gate}\n")
    for connection in (kept, *others):
        connection.send_request("POST", "/waiting", "Content-Length: 3")
        connection.send(b"abc")
    # No limit that is asserted: whoever waits has to wait for so long at least.
    time.sleep(seconds)
    gate.touch()
    assert holding.response().status == 200
    responses = [connection.response() for connection in (kept, *others)]
    for response in responses:
        if response.status == 503:
            assert response.get("Retry-After") == "1"
    # Refused or not, they are kept.
    assert kept.request("GET", "/after").status == 200
    return [response.status for response in responses]


@pytest.mark.each_mode
def test_a_request_that_has_waited_too_long_is_refused(mode: str, tmp_path: Path) -> None:
    with one_thread(mode, "--queue-timeout", str(SHORT)) as server:
        assert statuses(server, tmp_path / "gate", 2 * SHORT) == [503] * 3
        assert server.get("/prompt").status == 200
        server.wait_log("(queue_timeout)")
        assert server.log().count("(queue_timeout)") == 1
        assert "ran POST /waiting" not in server.log()


@pytest.mark.each_mode
def test_streams_that_have_waited_too_long_are_refused(mode: str, tmp_path: Path) -> None:
    """As in HTTP/1; also those that have come while the only thread was busy."""
    log, gate = tmp_path / "log", tmp_path / "gate"
    logged = ("--access-log", str(log), "--access-log-format", "%s %U", "--http2=on")
    with one_thread(mode, "--queue-timeout", str(SHORT), *logged) as server:
        with Client(("127.0.0.1", server.port)) as holding, server.connect() as connection:
            held = holding.begin(f"/hold?{gate}")
            server.wait_log(f"holds {gate}\n")
            streams = [holding.begin("/waiting") for _ in range(3)]
            # They have been read when the answer comes.
            holding.ping()
            time.sleep(2 * SHORT)
            gate.touch()
            assert holding.whole(held).status == 200
            for stream in map(holding.whole, streams):
                assert (stream.status, stream.get("retry-after")) == (503, "1")
            assert holding.get("/after").status == 200
            assert connection.request("GET", "/prompt").status == 200
        assert server.log().count("(queue_timeout)") == 1
        assert "ran GET /waiting" not in server.log()
        wait_for(lambda: log.read_text().count("\n") == 6, "six lines")
        assert log.read_text().count("503 /waiting\n") == 3


def test_a_burst_is_not_refused(mode: str, tmp_path: Path) -> None:
    with one_thread(mode) as server:
        assert statuses(server, tmp_path / "gate") == [200] * 3


class Queue:
    """Clients that always have to wait: for one that holds the thread, and for the next one."""

    def __init__(self, server: Server, folder: Path, leaving: int) -> None:
        self.server, self.folder, self.leaving = server, folder, leaving
        self.waiting = [server.connect() for _ in range(30)]
        self.gate, self.holding = self.hold()
        server.wait_log(f"holds {self.gate}\n")

    def hold(self) -> tuple[Path, Connection]:
        gate = self.folder / str(time.monotonic_ns())
        holding = self.server.connect()
        holding.send_request("GET", f"/hold?{gate}")
        return gate, holding

    def statuses(self) -> set[int]:
        """Of one request of each, after it has waited for `LONG`; some clients leave meanwhile."""
        for connection in self.waiting:
            connection.send_request("GET", "/waiting")
        for _ in range(self.leaving):
            with self.server.connect() as connection:
                connection.send_request("GET", "/left")
        before, (self.gate, holding) = self.gate, self.hold()
        time.sleep(LONG)
        before.touch()
        self.holding.response()
        self.holding = holding
        return {connection.response().status for connection in self.waiting}

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.touch()
        self.holding.response()


def test_who_always_has_to_wait_is_refused_if_clients_leave(mode: str, tmp_path: Path) -> None:
    """By default."""
    with one_thread(mode) as server, Queue(server, tmp_path, leaving=10) as queue:
        wait_for(lambda: 503 in queue.statuses(), "a 503")


def test_who_waits_patiently_is_not_refused(mode: str, tmp_path: Path) -> None:
    with one_thread(mode) as server, Queue(server, tmp_path, leaving=0) as queue:
        for _ in range(6):
            assert queue.statuses() == {200}
