"""The clients of the load lab: what they ask, what they count, and what they say of it."""

from __future__ import annotations

import socket
import threading
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from loadtests import servers
from loadtests.clients import fetch, trace
from loadtests.clients.trace import FIELDS, MAGIC, Trace
from loadtests.errors import LabError
from loadtests.histogram import quantile
from loadtests.process import Running
from loadtests.scenarios import HELLO
from tests.client import HANG


@pytest.fixture(scope="module")
def floor() -> Iterator[Running]:
    """The server that is never the limit."""
    with Running(servers.FLOOR, HELLO) as running:
        yield running


@contextmanager
def silent() -> Iterator[int]:
    """A port where connections are made and nothing is answered."""
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as listener:
        yield listener.getsockname()[1]


@contextmanager
def once_each(answers: Sequence[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """A server that gives each answer on a connection of its own; its port, and what was asked."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    asked.append(connection.recv(65536))
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1], asked
        thread.join(HANG)


def nobody() -> int:
    """A port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def rows(*given: tuple[int, ...]) -> Trace:
    numbers = array("Q", [number for row in given for number in row])
    return Trace(numbers, began=5.0, seconds=2.0, stopped=False)


class TestTrace:
    known = rows(
        (0, 10, 40, 90, 100, 1000, 200, 0, 0),
        (5, 11, 0, 0, 60, 0, 0, 1, 1),
        (900_000, 900_000, 900_000, 1_000_050, 1_000_100, 1000, 200, 0, 2),
        (950_000, 950_020, 950_030, 950_040, 951_000, 90, 500, 4, 0),
        (1_500_000, 0, 0, 0, 0, 0, 0, 5, 0),
    )

    def test_times_of_those_that_succeeded(self) -> None:
        assert len(self.known) == 5
        assert self.known.numbers() == [1, 3]
        assert self.known.connect() == [30, 0]
        assert self.known.processing() == [60, 100_100]
        assert self.known.answer() == [90, 100_050]
        assert self.known.total() == [100, 100_100]
        assert quantile(self.known.histogram(), 0.5) == 100

    def test_failures_by_kind(self) -> None:
        assert self.known.failed() == {"connect": 1, "status": 1, "timeout": 1}

    def test_when_they_ended(self) -> None:
        assert self.known.per_second() == [1, 1]
        assert self.known.per_second(0.25) == [1, 0, 0, 0, 1]
        assert rows().per_second() == []

    def test_a_curve(self) -> None:
        assert trace.curve([3, 1, 2]) == [1, 2, 3]
        assert trace.curve(range(1001, 0, -1), 5) == [1, 251, 501, 751, 1001]
        assert len(trace.curve(range(100_000))) == trace.POINTS
        assert trace.curve([]) == []

    def test_a_file_that_is_not_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "trace"
        header = [MAGIC, 1, 7, 2_000_000_000, 1, 0, 0, 0, 0]
        path.write_bytes(array("Q", header + list(range(FIELDS))).tobytes())
        assert trace.read(path).seconds == 2
        assert trace.read(path).stopped
        for numbers in (header, [*header, 1], [8, *header[1:], *range(FIELDS)], []):
            path.write_bytes(array("Q", numbers).tobytes())
            with pytest.raises(LabError, match="the trace trace is not whole"):
                trace.read(path)


class TestTraced:
    def check(self, found: fetch.Traced, *, requests: int) -> None:
        seen = found.trace
        assert (len(seen), found.load.requests, seen.failed()) == (requests, requests, {})
        assert set(seen.status) == {200}
        assert sum(seen.octets) == found.load.octets
        assert list(seen.intended) == sorted(seen.intended)
        assert sum(seen.per_second()) == requests
        columns = (seen.intended, seen.sent, seen.connected, seen.answered, seen.ended)
        for moments in zip(*columns, strict=True):
            assert list(moments) == sorted(moments)
        assert sum(seen.total()) / requests == pytest.approx(found.load.mean_us, abs=2)

    @pytest.mark.parametrize("connections", [1, 16])
    def test_a_connection_for_each(self, floor: Running, connections: int) -> None:
        found = fetch.traced(floor.port, HANG, connections, [["/a"], ["/b"]], requests=100)
        self.check(found, requests=100)
        assert sorted(found.trace.target) == [0] * 50 + [1] * 50
        assert list(found.trace.intended) == list(found.trace.sent)
        assert min(found.trace.connect()) > 0
        if connections == 1:
            assert list(found.trace.target[:4]) == [0, 1, 0, 1]
            ends = list(found.trace.ended)
            assert all(sent >= end for sent, end in zip(found.trace.sent[1:], ends, strict=False))

    def test_kept(self, floor: Running) -> None:
        visits = [["/a", "/b"], ["/c"]]
        found = fetch.traced(floor.port, HANG, 3, visits, requests=50, keep=True)
        self.check(found, requests=50)
        assert sum(time > 0 for time in found.trace.connect()) <= 3
        assert set(found.trace.target) == {0, 1, 2}

    def test_bursts(self, floor: Running) -> None:
        found = fetch.traced(
            floor.port, HANG, 5, [["/"]], requests=20, every=0.1, most_unanswered=30
        )
        self.check(found, requests=20)
        assert list(found.trace.intended) == [n * 100_000 for n in range(4) for _ in range(5)]
        assert not found.trace.stopped

    def test_a_rate(self, floor: Running) -> None:
        found = fetch.traced(floor.port, 0.2, 1, [["/"]], rate=200)
        self.check(found, requests=40)
        assert list(found.trace.intended) == [n * 5000 for n in range(40)]

    def test_pauses(self, floor: Running) -> None:
        found = fetch.traced(floor.port, HANG, 2, [["/", "/"]], requests=8, keep=True, think=0.05)
        self.check(found, requests=8)
        assert found.load.seconds >= 0.15

    def test_at_random(self, floor: Running) -> None:
        visits = [[f"/{number}"] for number in range(10)]

        def targets(seed: int) -> list[int]:
            found = fetch.traced(floor.port, HANG, 1, visits, requests=200, seed=seed)
            return list(found.trace.target)

        first = targets(0)
        assert set(first) == set(range(10))
        assert first == targets(0) != targets(1)

    def test_the_older_protocol_in_small_pieces(self) -> None:
        answer = b"HTTP/1.0 200 OK\r\n\r\n" + bytes(100_000)
        with once_each([answer] * 3) as (port, asked):
            found = fetch.traced(
                port, HANG, 1, [["/a", "/b", "/c"]], requests=3, old=True, receive=8192, keep=True
            )
        self.check(found, requests=3)
        assert set(found.trace.octets) == {100_019}
        assert asked[1] == b"GET /b HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"

    def test_a_server_that_keeps_no_connection(self) -> None:
        """It says so, in each version of the protocol, and is connected to anew."""
        answers = [
            b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        ]
        with once_each(answers * 2) as (port, _):
            found = fetch.traced(port, HANG, 1, [["/a", "/b"]], requests=4, keep=True)
        self.check(found, requests=4)

    def test_too_many_unanswered(self) -> None:
        with silent() as port:
            found = fetch.traced(port, HANG, 10, [["/"]], every=0.05, most_unanswered=35)
        assert found.trace.stopped
        assert found.load.errors == found.trace.failed() == {"timeout": 35}
        assert found.trace.seconds < 5
        assert found.trace.total() == []

    def test_patience(self) -> None:
        with silent() as port:
            found = fetch.traced(port, 0.1, 2, [["/"]], requests=5, patience=0.2)
        assert (len(found.trace), found.load.errors) == (2, {"timeout": 2})
        assert found.trace.seconds >= 0.3

    def test_nobody_listens(self) -> None:
        found = fetch.traced(nobody(), HANG, 2, [["/"]], requests=50)
        assert found.load.errors == {"connect": 50}
        assert set(found.trace.kind) == {trace.KINDS.index("connect")}
