"""Draining: workers end while others serve on the same socket, and no request is lost."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from threading import Event
from typing import Any

import psutil
import pytest

from tests.supervisor.stops import wait_end, wait_refusing
from tests.support.each_value import DIFFERENT, each_value
from tests.support.forked_command import run_command
from tests.support.health_probe import ask
from tests.support.status_reader import Admin
from tests.testkit.client import Connection, Response
from tests.testkit.process import children, lives, opened, stopped
from tests.testkit.server import Server, patched, wait_for

#: Longer than any test: what happens earlier was not waited for.
NEVER = "600"

#: Answers with process, path and body, perhaps once the file exists that is the query; below /begun
#: the answer is begun before that.
APP = """
import os, sys, time

def application(environ, start_response):
    path, gate = environ["PATH_INFO"], environ["QUERY_STRING"]
    text = b"%d %s %s" % (os.getpid(), path.encode(), environ["wsgi.input"].read())
    write = start_response("200 OK", [("Content-Length", str(len(text)))])
    begun = 1 if path == "/begun" else 0
    if begun:
        write(text[:begun])
    if gate:
        environ["wsgi.errors"].write(f"entered {gate}\\n")
        while not os.path.exists(gate):
            time.sleep(0.002)
    return [text[begun:]]

def exited(worker):
    print("worker", worker.pid, "ended", worker.exit_code, file=sys.stderr, flush=True)
"""


class Draining(Server):
    """A server of this application, whose workers can be replaced.

    If options do not say otherwise, it has one, for which idle connections are never silent for too
    long.
    """

    def __init__(self, folder: Path, mode: str, *options: str, **more: Any) -> None:
        (folder / "app.py").write_text(APP)
        self.admin = f"{folder}/admin"
        one = () if "--workers" in options else ("--workers", "1")
        patient = () if "--drain-timeout" in options else ("--drain-timeout", NEVER)
        words = ("--hook-worker-exit", "app:exited", "--admin", f"unix:{self.admin}")
        super().__init__("app.py", mode, *words, *one, *patient, *options, cwd=folder, **more)
        self.sockets = {link for link in opened(self.process.pid) if "socket:" in link}

    def pids(self) -> list[int]:
        """The workers that listen."""
        return [pid for pid in children(self.process.pid) if self.listens(pid)]

    def listens(self, pid: int) -> bool:
        """Whether it is a worker that listens: it has the socket of the main process."""
        with suppress(OSError, psutil.NoSuchProcess):
            is_worker = "worker" in psutil.Process(pid).name()
            return is_worker and not self.sockets.isdisjoint(opened(pid))
        return False

    def replace(self, pid: int) -> int:
        """Replace a worker, and wait until it does not listen any more; its successor."""
        before = self.pids()
        done = run_command("ctl", "--admin", f"unix:{self.admin}", "restart", str(pid))
        assert done.returncode == 0, done.stderr
        wait_for(lambda: not self.listens(pid), f"worker {pid} stops to listen")
        (successor,) = {*self.pids()} - {*before}
        return successor

    def wait_exit(self, pid: int) -> None:
        """Wait for the end of a worker, which must be a good one."""
        self.wait_log(f"worker {pid} ended 0\n")


@pytest.fixture
def server(mode: str, folder: Path) -> Iterator[Draining]:
    with Draining(folder, mode) as server:
        yield server


def served_by(response: Response) -> int:
    assert response.status == 200
    return int(response.body.split()[0])


def accepted(server: Server) -> Connection:
    """A connection that has been accepted, and whose client has had an answer."""
    connection = server.connect()
    assert connection.request("GET", "/").get("Connection") is None
    return connection


def test_idle_connections_are_heard(server: Draining) -> None:
    (one,) = server.pids()
    idle, gone, fresh = accepted(server), accepted(server), server.connect()
    # The worker takes one after the other, so what came before this one has been accepted.
    last = accepted(server)
    other = server.replace(one)
    assert served_by(server.get("/")) == other
    for connection in (idle, fresh):
        answer = connection.request("GET", "/")
        assert served_by(answer) == one
        assert answer.get("Connection") == "close"
        assert connection.at_end()
    # A client that leaves is not waited for.
    gone.close()
    assert lives(one)
    last.close()
    server.wait_exit(one)


def test_who_is_silent_for_too_long_is_closed(mode: str, folder: Path) -> None:
    with Draining(folder, mode, "--drain-timeout", "0.1") as server:
        (one,) = server.pids()
        idle, fresh = accepted(server), server.connect()
        accepted(server).close()
        server.replace(one)
        assert idle.at_end()
        assert fresh.at_end()
        server.wait_exit(one)


@pytest.mark.parametrize(("mode", "pieces"), each_value(DIFFERENT, [1, 3, 7]), indirect=["mode"])
def test_a_pipeline_is_answered_to_its_end(server: Draining, tmp_path: Path, pieces: int) -> None:
    connection = server.enter(gate := tmp_path / "gate")
    requests = b"".join(
        b"POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" % number
        for number in range(4)
    )
    cuts = [len(requests) * piece // pieces for piece in range(pieces + 1)]
    connection.send(requests[: cuts[1]])
    server.process.terminate()
    wait_refusing(server)
    gate.touch()
    answers = [connection.response()]
    for start, end in pairwise(cuts[1:]):
        connection.send(requests[start:end])
    answers += [connection.response() for _ in range(4)]
    assert [answer.body.split()[1] for answer in answers[1:]] == [b"/0", b"/1", b"/2", b"/3"]
    assert [answer.get("Connection") for answer in answers] == [None] * 4 + ["close"]
    assert connection.at_end()
    wait_end(server)


#: The beginning of a request, its end, and what is said of it.
HALVES = [
    (b"G", b"ET /head HTTP/1.1\r\nHost: a\r\n\r\n", b"/head"),
    (b"GET /half HTTP/1.1\r\n", b"Host: a\r\n\r\n", b"/half"),
    (b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx", b"y", b"/body xy"),
]


@pytest.mark.each_mode
def test_what_is_half_there_is_heard_out(mode: str, folder: Path) -> None:
    # What is half there may stay so for as long as a busy machine needs for the other worker.
    patient = ("--header-timeout", NEVER, "--body-timeout", NEVER)
    with Draining(folder, mode, "--drain-timeout", "0", *patient) as server:
        (one,) = server.pids()
        for before, behind, path in HALVES:
            connections = [accepted(server), server.connect()]
            for connection in connections:
                connection.send(before)
            accepted(server).close()
            other = server.replace(one)
            for connection in connections:
                connection.send(behind)
                answer = connection.response()
                assert answer.body.strip() == b"%d %s" % (one, path)
                assert answer.get("Connection") == "close"
                assert connection.at_end()
            server.wait_exit(one)
            assert served_by(server.get("/")) == other
            one = other


def test_an_answer_that_has_begun_is_followed_by_another(
    server: Draining, folder: Path, tmp_path: Path
) -> None:
    """In `threading` by another thread: that of the answer, which streams, has left the pool."""
    (pid,) = server.pids()
    connection = server.enter(gate := tmp_path / "gate", "/begun")
    if server.mode == "threading":
        streams = Admin(folder).wait
        streams(lambda service: service["figures"]["streaming_threads"], "the answer streams")
    server.process.terminate()
    wait_for(lambda: not server.listens(pid), "the worker stops to listen")
    gate.touch()
    answer = connection.response()
    assert answer.body.endswith(b" /begun ")
    assert answer.get("Connection") is None
    assert connection.request("GET", "/next").get("Connection") == "close"
    assert connection.at_end()
    wait_end(server)


#: With this, workers may be held up by SIGSTOP for as long as a test takes.
HELD_UP = patched("poorhttp.supervisor.worker_handle", STOPPED=3600)


def waiting(server: Server) -> Connection:
    """A connection that waits to be accepted, with its request."""
    connection = server.connect()
    connection.send_request("GET", "/")
    return connection


def test_who_waits_is_left_to_the_others(mode: str, folder: Path) -> None:
    with Draining(folder, mode, "--workers", "2", launcher=HELD_UP) as server:
        other, one = server.pids()
        with stopped(other):
            with stopped(one):
                connection = waiting(server)
                server.process.send_signal(signal.SIGTTOU)
                server.wait_log("1 worker")
            server.wait_exit(one)
        assert served_by(connection.response()) == other


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_who_waits_is_let_in_if_there_are_no_others(
    mode: str, number: signal.Signals, folder: Path
) -> None:
    """Although the main process has told the worker to stop, or has been killed."""
    with Draining(folder, mode, launcher=HELD_UP) as server:
        (pid,) = server.pids()
        with stopped(pid):
            connection = waiting(server)
            server.process.send_signal(number)
        answer = connection.response()
        assert served_by(answer) == pid
        wait_refusing(server)
        # Unless it came first.
        if answer.get("Connection") is None:
            assert connection.request("GET", "/next").get("Connection") == "close"
        assert connection.at_end()
        if number == signal.SIGTERM:
            wait_end(server)
        else:
            wait_for(lambda: not lives(pid), "the end of the worker")
            assert "Traceback" not in server.log()
            server.kill()


def test_a_quick_stop_hears_nobody(server: Draining) -> None:
    connection = accepted(server)
    server.process.send_signal(signal.SIGINT)
    assert connection.at_end()
    wait_end(server)


def test_nobody_is_heard_beyond_the_graceful_time(mode: str, folder: Path) -> None:
    # Where a worker needs longer than that to say so, it is not killed meanwhile.
    launcher = patched("poorhttp.worker.stop_signals", GRACE=3600)
    with Draining(folder, mode, "--graceful-timeout", "0.1", launcher=launcher) as server:
        (one,) = server.pids()
        idle, half = accepted(server), accepted(server)
        half.send(b"GET /half HTTP/1.1\r\n")
        server.replace(one)
        assert idle.at_end()
        assert half.response().status == 408
        server.wait_exit(one)


def test_the_last_request_that_a_worker_was_made_for(mode: str, folder: Path) -> None:
    """Whoever is connected to it is served on, until its successor serves."""
    loaded = folder / "loaded"
    waits = f"while not os.path.exists({str(loaded)!r}):\n    time.sleep(0.002)\n"
    with Draining(folder, mode, "--max-requests", "3") as server:
        (folder / "app.py").write_text(APP + waits)
        (one,) = server.pids()
        connection = accepted(server)
        connection.request("GET", "/2")
        assert ask(server.admin) == (200, "ready")
        assert server.pids() == [one]
        connection.request("GET", "/3")
        wait_for(lambda: len(server.pids()) == 2, "its successor")
        for number in range(4, 10):
            assert connection.request("GET", f"/{number}").get("Connection") is None
        loaded.touch()
        server.wait_log("is replaced: it has begun max_requests requests")
        connection.close()
        server.wait_exit(one)
        assert server.log().count("is replaced") == 1


class Clients:
    """Clients that behave: each asks on after a pause, whatever it is told of its connection."""

    def __init__(self, server: Server, pause: float) -> None:
        self.server = server
        self.pause = pause
        self.enough = Event()
        self.answers = 0

    def ask(self, at_once: int = 1, most: int = 1, field: bytes = b"") -> None:
        """Send so many requests at once, of less than `most` octets, again and again."""
        while not self.enough.wait(self.pause):
            with Connection(("127.0.0.1", self.server.port)) as connection:
                closing = None
                for number in count():
                    body = b"x" * (number * 997 % most)
                    head = b"%b / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n%b\r\n"
                    method = b"POST" if body else b"GET"
                    connection.send((head % (method, len(body), field) + body) * at_once)
                    answers = [connection.response() for _ in range(at_once)]
                    assert [answer.status for answer in answers] == [200] * at_once
                    *others, closing = [answer.get("Connection") for answer in answers]
                    assert others == [None] * (at_once - 1)
                    self.answers += at_once
                    if closing == "close" or self.enough.wait(self.pause):
                        break
                assert closing is None or connection.at_end()


@pytest.mark.each_mode
@pytest.mark.parametrize(
    ("rounds", "pause"), [(4, 0.005), pytest.param(10, 0, marks=pytest.mark.full)]
)
def test_nothing_is_lost_while_workers_come_and_go(
    mode: str, rounds: int, pause: float, folder: Path
) -> None:
    with (
        Draining(folder, mode, "--workers", "2") as server,
        ThreadPoolExecutor(16) as pool,
    ):
        clients = Clients(server, pause)
        kinds: list[Callable[[], None]] = [
            *(clients.ask, partial(clients.ask, most=30_000), partial(clients.ask, at_once=5)),
            partial(clients.ask, field=b"Connection: close\r\n"),
        ]
        running = [pool.submit(kind) for kind in kinds for _ in range(4)]
        try:
            for _ in range(rounds):
                served = clients.answers
                server.replace(server.pids()[0])
                wait_for(
                    lambda: clients.answers > served or any(one.done() for one in running),  # noqa: B023
                    "an answer of somebody",
                )
        finally:
            clients.enough.set()
        for one in running:
            one.result()
