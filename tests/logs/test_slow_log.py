"""`slow_request`: log lines with the phases of a slow request."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.testkit.client import Connection
from tests.testkit.server import Server, wait_for

SLOW = "tests/apps/slow.py"
LIMIT = ("--slow-request", "0.3")

LINE = re.compile(
    r"warning: request \d+ (?P<line>\S+ \S+): (?P<status>\d+), (?P<total>[\d.]+) s: "
    r"(?P<waiting>[\d.]+) waiting for a thread, (?P<application>[\d.]+) in the application, "
    r"(?P<sending>[\d.]+) sending\n"
)


class SlowRequest:
    """What the log says of one request, in seconds."""

    def __init__(self, found: re.Match[str]) -> None:
        self.line, self.status = found["line"], int(found["status"])
        self.total, self.waiting = float(found["total"]), float(found["waiting"])
        self.application, self.sending = float(found["application"]), float(found["sending"])


def slow_requests(server: Server, count: int, target: str = "/briefly") -> list[SlowRequest]:
    """The slow requests for a target, as soon as there are so many.

    On a busy machine others may be slow as well, and each may wait or be sent for any time. So
    what a request must have taken is looked at, and not what it must not.
    """

    def found() -> list[SlowRequest]:
        requests = map(SlowRequest, LINE.finditer(server.log()))
        return [request for request in requests if f" {target}" in request.line]

    wait_for(lambda: len(found()) >= count, f"{count} slow requests")
    return found()


def test_time_in_the_application(mode: str) -> None:
    with Server(SLOW, mode, *LIMIT) as server:
        with server.connect() as connection:
            for path in ("/", "/briefly?0.6", "/"):
                assert connection.request("GET", path).status == 200
        (slow,) = slow_requests(server, 1)
        assert (slow.line, slow.status) == ("GET /briefly?0.6", 200)
        assert slow.application > 0.5
        figures = slow.waiting + slow.application + slow.sending
        assert abs(slow.total - figures) < 0.01


@contextmanager
def held(connection: Connection, fifo: Path, seconds: float) -> Iterator[None]:
    """A request keeps its thread through this block, and for so long behind it."""
    os.mkfifo(fifo)
    connection.send_request("GET", f"/held?{fifo}")
    # It can be opened once the application reads it.
    with fifo.open("wb"):
        yield
        # Whoever waits has to wait for so long at least.
        time.sleep(seconds)


@pytest.mark.each_mode
def test_waiting_for_a_thread(mode: str, tmp_path: Path) -> None:
    options = {"forking": ("--workers", "1"), "threading": ("--threads", "1")}.get(mode, ())
    with Server(SLOW, mode, *LIMIT, *options) as server:
        with server.connect() as one, server.connect() as other, server.connect() as fresh:
            # One that was let in before has its request found at once, when there is time.
            assert other.request("GET", "/").status == 200
            with held(one, tmp_path / "fifo", 0.6):
                for connection in (other, fresh):
                    connection.send_request("GET", "/briefly?0.6")
            for connection in (one, other, fresh):
                assert connection.response().status == 200
        first, second = sorted(slow.waiting for slow in slow_requests(server, 2))
        # The second has waited for the first's computing, too; in gevent not for its sleep.
        computing = 0.3 if mode == "gevent" else 0.6
        assert first > 0.5
        assert second > 0.5 + computing


def test_a_client_that_takes_its_time_to_ask_is_not_slow(mode: str, tmp_path: Path) -> None:
    # Longer than a busy machine makes anybody wait.
    with Server(SLOW, mode, "--slow-request", "3") as server:
        with server.connect() as connection, server.connect() as other:
            head = b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\n"
            connection.send(head + b"1")
            with held(other, tmp_path / "fifo", 3.5):
                pass
            assert other.response().status == 200
            # So that the server has looked around since.
            assert server.get("/").status == 200
            connection.send(b"2")
            assert connection.response().status == 200
        server.process.terminate()
        assert server.wait() == 0
        found = slow_requests(server, 1, "/held")
        assert [slow.line for slow in found] == [f"GET /held?{tmp_path / 'fifo'}"]
        assert "POST" not in server.log()
        server.ended()


def test_sending_to_a_slow_reader(mode: str) -> None:
    octets = 16_000_000
    with Server(SLOW, mode, *LIMIT, "--threads", "1") as server:
        with server.connect() as connection:
            connection.send_request("GET", f"/large?{octets}")
            assert connection.socket.recv(1, socket.MSG_PEEK) == b"H"
            # The only thread is free again: from now on, the time is that of sending.
            assert server.get("/").status == 200
            # Nothing is read while the others are answered.
            for _ in range(2):
                assert server.get("/briefly?0.6").status == 200
            assert len(slow_requests(server, 2)) == 2
            assert len(connection.response().body) == octets
        (slow,) = slow_requests(server, 1, "/large")
        assert slow.status == 200
        assert slow.sending > 1


def test_timed_out(mode: str) -> None:
    """What was answered by nobody but the watch is a slow request as well."""
    with Server(SLOW, mode, *LIMIT, "--request-timeout", "0.5") as server:
        assert server.get("/nap").status == 504
        (slow,) = slow_requests(server, 1, "/nap")
        assert (slow.line, slow.status) == ("GET /nap", 504)
        assert slow.application > 0.4


def test_a_limit_below_a_millisecond(mode: str) -> None:
    with Server(SLOW, mode, "--slow-request", "0.0004") as server:
        assert server.get("/briefly?0.002").status == 200
        assert slow_requests(server, 1)
