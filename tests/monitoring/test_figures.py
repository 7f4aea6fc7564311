"""Metrics: equal to what clients have counted, over reloads, upgrades and killed workers."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from poorhttp import _core
from poorhttp.plugins.monitor.admin.model import BOUNDS
from tests.support.binary_upgrade import end, upgrade
from tests.support.http2_client import client
from tests.support.status_reader import Admin
from tests.testkit.client import HANG, BadResponse, Closed, Connection
from tests.testkit.process import opened, workers
from tests.testkit.server import Server, join, patched, wait_for

if TYPE_CHECKING:
    from poorhttp.plugins.monitor.admin.model import Service

APP = "tests.apps.statuses:application"

#: What a client asks for in turn: method, status that the application gives, bytes of the body.
SMALL = [
    ("GET", 200, 0),
    ("POST", 200, 5),
    ("GET", 404, 0),
    ("GET", 302, 0),
    ("GET", 500, 0),
    ("POST", 503, 1_000),
]

#: The same with a response that is sent in pieces. It is counted when it is complete, just after
#: the kernel has it, and all others just before.
KINDS = [*SMALL, ("POST", 201, 70_000)]

#: What the server refuses itself, and its status.
REFUSED = [
    (b"GET /\x00 HTTP/1.1\r\nHost: test\r\n\r\n", 400),
    (b"GET / HTTP/3.0\r\nHost: test\r\n\r\n", 505),
    (b"GET /" + b"x" * 9_000 + b" HTTP/1.1\r\nHost: test\r\n\r\n", 414),
    (b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 2000000\r\n\r\n", 413),
    (b"GET / HTTP/1.1\r\nHost: test\r\nX: " + b"x" * 17_000 + b"\r\n\r\n", 431),
]


@pytest.fixture
def admin(folder: Path) -> Admin:
    return Admin(folder)


#: Clients of a `CountingLoad`, each with one request at a time.
CLIENTS = 4


class CountingLoad:
    """Clients in threads of the test, which count what they ask for and what they get.

    Attributes:
        asked: requests that were sent as a whole.
        answers: complete responses, by status.
        faults: other statuses than were expected.
    """

    def __init__(self, port: int, kinds: Sequence[tuple[str, int, int]] = KINDS) -> None:
        self._port = port
        self._kinds = kinds
        self._over = threading.Event()
        self._lock = threading.Lock()
        self.asked = 0
        self.answers: Counter[int] = Counter()
        self.faults: list[str] = []
        self._threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True)
            for number in range(CLIENTS)
        ]

    def __enter__(self) -> CountingLoad:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._over.set()
        join(*self._threads)
        if kind is None:
            assert self.faults == []

    @property
    def unanswered(self) -> int:
        """Requests without a complete response."""
        return self.asked - self.answers.total()

    def wait_more(self, answers: int) -> None:
        before = self.answers.total()
        wait_for(lambda: self.answers.total() >= before + answers, f"{answers} more answers")

    def _run(self, number: int) -> None:
        while not self._over.is_set():
            try:
                with Connection(("127.0.0.1", self._port)) as connection:
                    while not self._over.is_set() and self._ask(connection, number):
                        number += 1
            except (OSError, Closed, BadResponse):
                # The worker was killed.
                time.sleep(0.001)
            number += 1

    def _ask(self, connection: Connection, number: int) -> bool:
        """Ask once; whether the connection may be used again."""
        if number % 11 == 0:
            data, expected = REFUSED[number // 11 % len(REFUSED)]
            connection.send(data)
            method = "POST"
        else:
            method, expected, length = self._kinds[number % len(self._kinds)]
            body = b"x" * length if length else None
            connection.send_request(method, f"/{expected}", body=body)
        with self._lock:
            self.asked += 1
        response = connection.response(method)
        with self._lock:
            self.answers[response.status] += 1
            if response.status != expected:
                self.faults.append(f"{response.status}, not {expected}")
        return number % 11 != 0 and response.get("Connection") != "close"


def classes(answers: Counter[int]) -> dict[str, int]:
    """Responses by the first digit of their status."""
    return {
        f"{hundred}xx": sum(n for status, n in answers.items() if status // 100 == hundred)
        for hundred in range(1, 6)
    }


def kill(main: int, index: int = 0) -> None:
    """Kill a worker of a main process, and wait until there is another one in its place."""
    before = workers(main)
    pid = before[index]
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: len(now := workers(main)) == len(before) and pid not in now, "a new worker")


def memories(main: int) -> int:
    """How many memories with statuses of workers a main process has."""
    return sum("poorhttp-status" in each for each in opened(main))


def test_nothing_is_counted_twice_or_lost(admin: Admin, tmp_path: Path) -> None:
    """Over two reloads, an upgrade, and the ends of two workers."""
    pidfile = tmp_path / "pid"
    options = ("--workers", "2", "--pidfile", str(pidfile), "--max-body", "1000000")
    with Server(APP, "threading", *options, *admin.options) as server:
        with CountingLoad(server.port) as load:
            for number in (1, 2):
                server.process.send_signal(signal.SIGHUP)
                server.wait_log("reloaded: the new version serves", number)
                load.wait_more(20)
            main = upgrade(server, pidfile)
            load.wait_more(20)
        figures = admin.figures()
        assert load.unanswered == 0
        assert figures["requests"] == load.asked
        assert figures["responses"] == classes(load.answers)
        refused = {status: number for status, number in figures["refused"].items() if number}
        assert refused == {str(status): load.answers[status] for _, status in REFUSED}
        with CountingLoad(server.port, SMALL) as other:
            for index in (0, 1):
                other.wait_more(20)
                kill(main, index)
            other.wait_more(20)
        figures = admin.figures()
        # A request that has no response at the end of its worker may have begun or not; and it was
        # counted as answered just before its response was sent, so that may have been lost, too.
        assert other.unanswered <= CLIENTS * 2
        extra = figures["requests"] - load.asked - other.answers.total()
        assert 0 <= extra <= other.unanswered
        got, given = classes(load.answers + other.answers), figures["responses"]
        surplus = [given[key] - got[key] for key in got]
        assert min(surplus) >= 0
        assert sum(surplus) <= other.unanswered
        assert admin.service()["restarts"]["died"] == 2
        end(server, main)


def test_an_old_worker_goes_on_counting(admin: Admin, tmp_path: Path) -> None:
    """After an upgrade, the request that the old main process still has is shown and counted."""
    pidfile, gate = tmp_path / "pid", tmp_path / "gate"
    options = ("--pidfile", str(pidfile), *admin.options)
    with Server(APP, "threading", *options) as server:
        held = server.enter(gate, "/201")
        assert server.get("/404").status == 404
        os.kill(server.process.pid, signal.SIGUSR2)
        server.wait_log("has taken over")
        wait_for(lambda: int(pidfile.read_text()) != server.process.pid, "the new main process")
        found = admin.wait(lambda each: each["figures"]["requests"] >= 2, "figures of both")
        assert found["figures"]["in_flight"] == 1
        assert found["figures"]["responses"]["2xx"] == 0
        assert server.get("/200").status == 200
        gate.touch()
        assert held.response().status == 201
        held.close()
        # It ends just after its response.
        figures = admin.wait(lambda each: not each["figures"]["in_flight"], "its end")["figures"]
        assert figures["requests"] == 3
        assert [figures["responses"][key] for key in ("2xx", "4xx")] == [2, 1]
        end(server, int(pidfile.read_text()))


def test_what_is_left_behind_is_added_up_and_freed(admin: Admin, tmp_path: Path) -> None:
    """When the main processes before have ended."""
    pidfile = tmp_path / "pid"
    launcher = patched("poorhttp.supervisor.scoreboard", SETTLED=0.0)

    def is_noted(service: Service) -> bool:
        return len(service["errors"]) == service["figures"]["responses"]["5xx"]

    options = ("--pidfile", str(pidfile), *admin.options)
    with Server(APP, "threading", *options, launcher=launcher) as server:
        main = server.process.pid
        own = memories(main)
        for number in range(1, 3):
            assert server.get("/200").status == 200
            assert server.get("/500").status == 500
            # The worker notes it when the response has been sent.
            admin.wait(is_noted, "the error")
            kill(main)
            main = upgrade(server, pidfile, number)
            for _ in range(2):
                found = admin.service()
                figures = found["figures"]
                counted = [figures["requests"], *figures["responses"].values()]
                assert counted == [2 * number, 0, number, 0, 0, number]
                assert len(found["errors"]) == found["restarts"]["died"] == number
                assert memories(main) == own
        end(server, main)


def test_what_is_left_behind_is_freed_unasked(tmp_path: Path) -> None:
    """Else each upgrade would leave two descriptors, which workers and later processes inherit."""
    pidfile = tmp_path / "pid"
    launcher = patched("poorhttp.supervisor.scoreboard", SETTLED=0.05)
    with Server(APP, "threading", "--pidfile", str(pidfile), launcher=launcher) as server:
        main = server.process.pid
        own = memories(main)
        for number in range(1, 3):
            main = upgrade(server, pidfile, number)
        wait_for(lambda: memories(main) == own, "the end of the memory of main processes before")
        end(server, main)


def test_a_reload_leaves_no_memory() -> None:
    """Nor does that of a server whose workers may be forked anew."""
    reforks = "--workers", "2", "--preload", "--refork-after=1000000"
    with Server(APP, "threading", *reforks) as server:
        main = server.process.pid
        own = memories(main)
        for number in (1, 2, 3):
            server.process.send_signal(signal.SIGHUP)
            server.wait_log("reloaded: the new version serves", number)
        wait_for(lambda: memories(main) == own, "the end of the memory of workers before")


def test_a_worker_that_was_stopped(admin: Admin) -> None:
    """And was killed for that, has a reason of its own."""
    launcher = patched("poorhttp.supervisor.worker_handle", STOPPED=0.1)
    with Server(APP, "threading", *admin.options, launcher=launcher) as server:
        (pid,) = workers(server.process.pid)
        os.kill(pid, signal.SIGSTOP)
        server.wait_log(f"worker {pid} was killed by SIGKILL and is replaced")
        expected = {"died": 0, "worn": 0, "stopped": 1, "timeout": 0, "asked": 0}
        assert admin.service()["restarts"] == expected


def test_lost_lines_of_the_main_process(admin: Admin) -> None:
    """Only that writes to its log here; also when a reload has opened another one."""
    file = Path(admin.path).with_name("http.ini")
    text = "[http]\nerror_log = /dev/full\n"
    file.write_text(text)
    with Server(APP, "threading", "-c", str(file), *admin.options) as server:
        before = admin.status()["log_lines_lost"]
        os.kill(server.process.pid, signal.SIGUSR1)
        os.kill(server.process.pid, signal.SIGHUP)
        wait_for(lambda: admin.status()["reloads"]["succeeded"] == 1, "the reload")
        lost = admin.status()["log_lines_lost"]
        assert lost > before
        file.write_text(f"{text}log_level = debug\n")
        os.kill(server.process.pid, signal.SIGHUP)
        wait_for(lambda: admin.status()["reloads"]["succeeded"] == 2, "the reload")
        assert admin.status()["log_lines_lost"] > lost


def test_what_a_worker_is_working_on(admin: Admin, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    options = ("--threads", "2", "--request-id", "on", *admin.options)
    with Server(APP, "threading", *options) as server:
        held = server.enter(gate, "/200")
        is_shown = lambda each: each["workers"][0]["working_on"]  # noqa: E731
        (request,) = admin.wait(is_shown, "the request")["workers"][0]["working_on"]
        assert request["line"] == f"GET /200?{gate}"
        assert (request["number"], request["upgraded"]) == (1, False)
        (pid,) = workers(server.process.pid)
        assert str(request["thread"]) in os.listdir(f"/proc/{pid}/task")
        older = admin.wait(lambda each: each["figures"]["oldest"] > request["seconds"], "its age")
        assert older["figures"]["in_flight"] == 1
        assert older["figures"]["connections"]["active"] == 1
        gate.touch()
        response = held.response()
        assert (response.status, response.get("X-Request-ID")) == (200, request["id"])

        # The parts of a report are read one after another.
        def is_done(each: Service) -> bool:
            busy = each["workers"][0]["working_on"] or each["figures"]["in_flight"]
            return bool(each["slowest"] and not busy)

        after = admin.wait(is_done, "the slowest request, which nobody works on")
        (slow,) = after["slowest"]
        assert (slow["line"], slow["status"], slow["pid"]) == (request["line"], 200, pid)
        assert slow["id"] == request["id"]
        assert slow["application"] >= older["figures"]["oldest"]
        assert abs(slow["when"] - time.time()) < HANG
        assert after["figures"]["oldest"] == 0
        counts = after["figures"]["application"]["counts"]
        assert sum(counts) == 1
        assert after["figures"]["application"]["sum"] == pytest.approx(slow["application"])
        # Since there are no requests, the connection is idle until it is closed.
        held.close()
        admin.wait(lambda each: not any(each["figures"]["connections"].values()), "its end")


def test_bytes(admin: Admin) -> None:
    with Server(APP, "threading", *admin.options) as server:
        head = b"POST /200 HTTP/1.1\r\nHost: test\r\nContent-Length: 300000\r\n\r\n"
        connection = server.connect()
        connection.send(head + b"x" * 300_000)
        connection.response()
        connection.send(b"GET /200 HTTP/1.1\r\nHost: test\r\n\r\n")
        connection.response()
        connection.close()
        has_ended = lambda each: not any(each["figures"]["connections"].values())  # noqa: E731
        figures = admin.wait(has_ended, "its end")["figures"]
        received = len(head) + 300_000 + len(b"GET /200 HTTP/1.1\r\nHost: test\r\n\r\n")
        assert figures["bytes_received"] == received
        # Two heads, and the body.
        assert 300_100 < figures["bytes_sent"] < 301_000
        assert figures["accepted"] == 1
        for name in ("waiting", "application", "sending"):
            histogram: Any = figures[name]
            assert sum(histogram["counts"]) == 2
            assert histogram["sum"] < HANG
        # To send a response at once takes no time.
        assert figures["waiting"]["sum"] > 0
        assert figures["application"]["sum"] > 0


def test_connections_by_state(admin: Admin) -> None:
    options = ("--header-timeout", "600", "--threads", "2", *admin.options)
    with Server(APP, "threading", *options) as server:
        idle, reading, sending = (server.connect() for _ in range(3))
        reading.send(b"GET / HTTP/1.1\r\nHo")
        assert idle.request("GET", "/200").status == 200
        sending.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        sending.send_request("POST", "/200", body=b"x" * 8_000_000)
        expected = {"reading": 1, "active": 0, "sending": 1, "idle": 1, "upgraded": 0}
        came = lambda each: each["figures"]["connections"] == expected  # noqa: E731
        admin.wait(came, f"{expected}")
        assert len(sending.response("POST").body) == 8_000_000
        reading.send(b"st: test\r\n\r\n")
        assert reading.response().status == 500
        expected |= {"reading": 0, "sending": 0, "idle": 3}
        admin.wait(came, f"{expected}")
        server.tracebacks = True


def test_streams_are_connections_of_a_state(admin: Admin, tmp_path: Path) -> None:
    """Each of them, and a request with a thread; the connection that carries them is idle."""
    gate = tmp_path / "gate"
    options = ("--http2=on", *admin.options)
    with (
        Server(APP, "threading", *options) as server,
        client(server) as made,
        server.connect() as idle,
    ):
        assert idle.request("GET", "/200").status == 200
        streams = [made.begin("/200", method="POST", ended=False) for _ in range(3)]
        expected = {"reading": 3, "active": 0, "sending": 0, "idle": 2, "upgraded": 0}
        came = lambda each: each["figures"]["connections"] == expected  # noqa: E731
        admin.wait(came, f"{expected}")
        for stream in streams:
            made.send(stream, ended=True)
            assert made.whole(stream).status == 200
        expected |= {"reading": 0}
        admin.wait(came, f"{expected}")
        held = [made.begin(f"/{status}?{gate}") for status in (200, 201)]
        both = {f"GET /200?{gate}", f"GET /201?{gate}"}
        are_shown = lambda each: {one["line"] for one in each["workers"][0]["working_on"]} == both  # noqa: E731
        admin.wait(are_shown, f"{both}")
        gate.touch()
        assert [made.whole(stream).status for stream in held] == [200, 201]


def test_departed_and_timed_out(admin: Admin, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    options = ("--threads", "1", "--request-timeout", "2", *admin.options)
    with Server(APP, "threading", *options) as server:
        held = server.enter(gate, "/200")
        leaving = server.connect()
        leaving.send_request("GET", "/200")
        leaving.reset()
        # The gate stays shut: its time is over some time.
        assert held.response().status == 504
        service = admin.wait(lambda each: each["figures"]["departed"], "the request was dropped")
        figures = service["figures"]
        assert (figures["departed"], figures["timed_out"]) == (1, 1)
        assert [figures["responses"][key] for key in ("2xx", "4xx", "5xx")] == [0, 1, 1]
        (error,) = service["errors"]
        assert (error["status"], error["line"]) == (504, f"GET /200?{gate}")
        assert error["application"] > 1.9
        server.tracebacks = True


@pytest.mark.parametrize("ends", [True, False])
def test_an_error_is_noted_when_it_is_answered(admin: Admin, tmp_path: Path, ends: bool) -> None:
    """Even if the application never ends, and once if it does."""
    seconds = 2.5 if ends else 2 * HANG
    text = f"import time\ndef application(environ, start_response): time.sleep({seconds})\n"
    (tmp_path / "late.py").write_text(text)
    graceful = ("--graceful-timeout", str(HANG) if ends else "0.5")
    options = ("--request-timeout", "0.5", *graceful, *admin.options)
    with Server(f"{tmp_path}/late.py:application", "threading", *options) as server:

        def late() -> list[list[int]]:
            service = admin.service()
            lists = (service["errors"], service["slowest"])
            return [[each["number"] for each in some if each["status"] == 504] for some in lists]

        assert server.get("/late").status == 504
        (error,) = admin.wait(lambda each: each["errors"], "the error")["errors"]
        assert (error["status"], error["line"]) == (504, "GET /late")
        assert 0.5 <= error["application"] < HANG
        assert late() == 2 * [[error["number"]]]
        server.wait_log("the application ended, too late" if ends else "and was killed")
        admin.wait(lambda each: each["restarts"]["timeout"], "the new worker")
        assert late() == 2 * [[error["number"]]]
        server.tracebacks = True


def test_files_and_spooled_bytes(admin: Admin, tmp_path: Path) -> None:
    (tmp_path / "page.txt").write_text("page")
    static = ("--static", f"/files={tmp_path}", "--body-buffer-size", "0")
    with Server(APP, "threading", *static, *admin.options) as server:
        asked = 0

        def came_from_the_cache() -> bool:
            # A file that has just changed is not kept.
            nonlocal asked
            asked += 1
            assert server.get("/files/page.txt").status == 200
            return admin.figures()["cache_hits"] > 1

        wait_for(came_from_the_cache, "the file is kept")
        assert server.request("POST", "/200", body=b"x" * 200_000).status == 200
        figures = admin.figures()
        assert figures["cache_hits"] + figures["cache_misses"] == asked
        assert figures["cache_misses"] > 0
        assert 0 < figures["spooled_bytes"] <= 200_000

        # The application had no part in the files.
        def counts() -> list[int]:
            figures = admin.figures()
            return [sum(figures[each]["counts"]) for each in ("waiting", "application")]

        # Times are counted when the response has been sent.
        wait_for(lambda: counts() == [asked + 1, 1], "the times of all requests")


def test_memory_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(_core.WorkerStatus.SIZE))
    with file.open("rb") as opened, pytest.raises(ValueError, match="no shared memory"):
        _core.SharedStatuses.inherited(opened.fileno())
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, _core.WorkerStatus.SIZE)
        with pytest.raises(ValueError, match="no statuses of workers of this version"):
            _core.SharedStatuses.inherited(fd)
    finally:
        os.close(fd)
    # Nobody can make it shorter: its readers would be killed.
    memory = _core.SharedStatuses(1)
    with pytest.raises(PermissionError):
        os.ftruncate(memory.fileno(), 1)


def test_both_sides_have_the_same_names() -> None:
    assert _core.WorkerStatus.BOUNDS == BOUNDS
