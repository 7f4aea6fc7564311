"""The study `ordered`: its calculations, faults, and a small run."""

from __future__ import annotations

import argparse
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from loadtests.clients.native import fetch
from loadtests.errors import ServerFailure
from loadtests.measure import histogram
from loadtests.servers.registry import Server
from loadtests.stats.results import Results
from loadtests.studies import engine, ordered
from loadtests.studies.bench.scenarios import HELLO
from loadtests.studies.ordered import FILE, PAGE, STUDY, Task
from loadtests.studies.study import TINY
from tests.lab.studies import small_run
from tests.packages import need
from tests.testkit.client import HANG
from tests.testkit.server import wait_for


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[engine.Lab]:
    """Which keeps its records in a file."""
    with small_run.lab(tmp_path) as small:
        yield small


class TestTimes:
    @pytest.mark.parametrize(
        ("seconds", "count"),
        [
            (0.0001, 0),
            (0.9, 0),
            (1.0, 1),
            (1.04, 1),
            (1.9, 0),
            (3.05, 2),
            (7.2, 3),
            (8.0, 0),
            (15.1, 4),
            (60.0, 0),
        ],
    )
    def test_how_many_syns_were_sent_again(self, seconds: float, count: int) -> None:
        assert ordered.repeats(seconds) == count

    def test_who_waited_for_them(self) -> None:
        connects = [80.0, 1_010_000, 3_020_000, 1_020_000, 500_000]
        assert ordered.repeated(connects) == {"1": 2, "2": 1}
        assert ordered.repeated([80.0]) == {}

    def test_curve(self) -> None:
        """A thousand requests of 1 ms, 2 ms and so on."""
        encoded = histogram.encode(histogram.record(1000 * one for one in range(1, 1001)))
        curve = ordered.curve(encoded)
        assert list(curve) == list(ordered.SHARES)
        assert len(curve) <= 201
        assert list(curve.values()) == sorted(curve.values())
        for share, value in ((0, 1), (10, 100), (50, 500), (99, 990), (100, 1000)):
            assert curve[share] == pytest.approx(value, rel=0.002)


SYN_SENT = "02"
"""Of net/tcp_states.h, as in /proc/net/tcp."""


def connecting(port: int) -> int:
    """Clients whose SYN this port has not answered yet."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()]
    return sum(row[2].endswith(f":{port:04X}") and row[3] == SYN_SENT for row in rows)


@contextmanager
def late(waiting: int) -> Iterator[int]:
    """A server that accepts nobody until so many cannot connect; yields its port."""
    over = threading.Event()

    def serve() -> None:
        wait_for(lambda: over.is_set() or connecting(port) >= waiting, "a full queue")
        while not over.is_set():
            try:
                connection = listener.accept()[0]
            except TimeoutError:
                continue
            with connection:
                connection.settimeout(HANG)
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        listener.settimeout(0.1)
        port = listener.getsockname()[1]
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield port
        finally:
            over.set()
            thread.join(HANG)


class TestFullQueue:
    def test_who_has_to_ask_again(self) -> None:
        """By the kernel: with a queue of two, most of ten connect when their SYN is repeated."""
        with late(5) as port:
            seen = fetch.traced(port, HANG, 10, [["/"]], requests=10, patience=0)
        described = ordered.describe(seen, Task(10, 10, HANG))
        connects = seen.trace.connect()
        assert sum(connect >= 1e6 * ordered.EARLY for connect in connects) >= 5
        assert described["repeated_syn"] == ordered.repeated(connects)
        assert described["answered"] + described["failed"] == 10


DIES = """\
import os
left = 15
def application(environ, start_response):
    global left
    left -= 1
    if not left:
        os._exit(3)
    start_response("200 OK", [("Content-Length", "2"), ("Content-Type", "text/plain")])
    return [b"ok"]
"""
WRONG = DIES.replace("import os\n", "import os\nstatus = '200 OK'\n").replace(
    "os._exit(3)", "global status; status = '500 Oh'"
)
WRONG = WRONG.replace('start_response("200 OK"', "start_response(status")
SERVING = (
    "{python} -c import~app;from~wsgiref~import~simple_server~as~s;"
    "s.WSGIRequestHandler.log_message=lambda~*words:None;"
    "s.make_server('127.0.0.1',{port},app.application).serve_forever()"
)


@pytest.mark.parametrize("text", [DIES, WRONG], ids=["dies", "is-wrong"])
def test_a_server_with_a_fault(lab: engine.Lab, tmp_path: Path, text: str) -> None:
    """One is looked at when it starts, ten are made to warm it up, and three are answered."""
    (tmp_path / "app.py").write_text(text)
    application = replace(HELLO, folder=str(tmp_path), module="app")
    server = Server("ill", "#000000", SERVING, application=application, target="/")
    described, died = ordered.measured(lab, server, Task(20, 1, HANG))
    assert (described["answered"], described["failed"]) == (3, 17)
    assert histogram.merge([described["total"]]).get_total_count() == 3
    if text == DIES:
        assert died is not None
        assert "it died, exit code 3" in str(died)
        assert "cpu_us" not in described
    else:
        assert described["errors"] == {"status": 17}


class TestSmallRun:
    def test_page_and_file(self, lab: engine.Lab) -> None:
        """By both clients."""
        need("ab")
        servers = [one for one in STUDY.servers() if one.name == "poorhttp single"]
        kinds = (PAGE.name, FILE.name, ordered.KIND)
        planned = STUDY.plan(lab, TINY, servers, argparse.Namespace())
        taken = [step for step in planned if step.what.split()[1] in kinds]
        engine.run(lab, taken, "test", study=STUDY.name, scale=TINY.name)
        results = Results(lab.store.records).experiment(STUDY.name)
        here = [server.name for server in servers]
        assert results.failures == []
        compared = [one for one in results.samples if "ab_ms" in one]
        results.samples = [one for one in results.samples if one not in compared]
        assert {one["server"] for one in results.samples} == set(here)
        assert len(compared) == 2 * len(here)
        assert {one["scenario"].rpartition("-")[0] for one in results.samples} == {
            PAGE.name,
            FILE.name,
        }
        for one in results.samples:
            assert one["answered"] == one["requests"]
            assert (one["failed"], one["errors"], one["repeated_syn"]) == (0, {}, {})
            assert one["cpu_us"] > 0
            assert one["rate"] == pytest.approx(one["requests"] / one["seconds"], rel=0.01)
            connect, processing, total = (histogram.merge([one[part]]) for part in ordered.PARTS)
            assert connect.get_total_count() == one["requests"]
            # Each request's two times make its third, and so do their means.
            parts = connect.get_mean_value() + processing.get_mean_value()
            assert parts == pytest.approx(total.get_mean_value(), rel=0.02, abs=3)
            assert one["octets"] > one["requests"] * 300


TIMES = """\
starttime\tseconds\tctime\tdtime\tttime\twait
Sun Nov 22 04:46:36 2026\t1795322796\t0\t15\t15\t13
Sun Nov 22 04:46:36 2026\t1795322796\t113\t52\t165\t41
"""


class TestSecondClient:
    def test_what_ab_writes(self) -> None:
        found = ordered.parse(TIMES)
        assert found == {"connect": [0, 113], "processing": [15, 52], "total": [15, 165]}

    @pytest.mark.parametrize("text", ["", "a\tb\n1\t2\n", TIMES[:-10], TIMES.replace("165", "x")])
    def test_what_it_does_not_write(self, text: str) -> None:
        with pytest.raises(ServerFailure, match="ab wrote"):
            ordered.parse(text)
