"""Draining: workers end while others serve on the same socket, and no request is lost."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from threading import Event

import pytest

from tests.support.each_value import DIFFERENT, each_value
from tests.support.main_process import MainProcess
from tests.testkit.client import Connection, Response
from tests.testkit.process import is_stopped
from tests.testkit.server import wait_for

#: Longer than any test: what happens earlier was not waited for.
NEVER = "600"


#: Options with which nothing ends because of the time.
PATIENT = (f"drain_timeout={NEVER}", f"graceful_timeout={NEVER}")


@pytest.fixture
def main(mode: str) -> Iterator[MainProcess]:
    """A main process whose workers are patient."""
    with MainProcess(mode, *PATIENT) as process:
        yield process


def served_by(response: Response) -> int:
    assert response.status == 200
    return int(response.body.split()[0])


def opened(main: MainProcess) -> Connection:
    """A connection that has been accepted, and whose client has had an answer."""
    connection = main.connect()
    assert connection.request("GET", "/").get("Connection") is None
    return connection


def test_idle_connections_are_heard(main: MainProcess) -> None:
    one = main.start()
    idle, gone, fresh = opened(main), opened(main), main.connect()
    # The worker takes one after the other, so what came before this one has been accepted.
    last = opened(main)
    other = main.replace(one)
    assert served_by(main.connect().request("GET", "/")) == other
    for connection in (idle, fresh):
        answer = connection.request("GET", "/")
        assert served_by(answer) == one
        assert answer.get("Connection") == "close"
        assert connection.at_end()
    # A client that leaves is not waited for.
    gone.close()
    assert not main.has_ended(one)
    last.close()
    main.ended(one)


def test_who_is_silent_for_too_long_is_closed(mode: str) -> None:
    with MainProcess(mode, "drain_timeout=0.1", "graceful_timeout=" + NEVER) as main:
        one = main.start()
        idle, fresh = opened(main), main.connect()
        opened(main).close()
        main.replace(one)
        assert idle.at_end()
        assert fresh.at_end()
        main.ended(one)


def entered(main: MainProcess, gate: Path, *, begun: str = "") -> Connection:
    """A connection whose request waits in the application for the file `gate`."""
    connection = main.connect()
    connection.send_request("GET", f"{begun}{gate}")
    main.entered(gate)
    return connection


@pytest.mark.parametrize(("mode", "pieces"), each_value(DIFFERENT, [1, 3, 7]), indirect=["mode"])
def test_a_pipeline_is_answered_to_its_end(main: MainProcess, tmp_path: Path, pieces: int) -> None:
    pid, gate = main.start(), tmp_path / "gate"
    connection = entered(main, gate)
    requests = b"".join(
        b"POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" % number
        for number in range(4)
    )
    cuts = [len(requests) * piece // pieces for piece in range(pieces + 1)]
    connection.send(requests[: cuts[1]])
    main.stop(pid)
    gate.touch()
    answers = [connection.response()]
    for start, end in pairwise(cuts[1:]):
        connection.send(requests[start:end])
    answers += [connection.response() for _ in range(4)]
    assert [answer.body.split()[1] for answer in answers[1:]] == [b"/0", b"/1", b"/2", b"/3"]
    assert [answer.get("Connection") for answer in answers] == [None] * 4 + ["close"]
    assert connection.at_end()
    main.ended(pid)


#: The beginning of a request, its end, and what is said of it.
HALVES = [
    (b"G", b"ET /head HTTP/1.1\r\nHost: a\r\n\r\n", b"/head"),
    (b"GET /half HTTP/1.1\r\n", b"Host: a\r\n\r\n", b"/half"),
    (b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx", b"y", b"/body xy"),
]


@pytest.mark.each_mode
def test_what_is_half_there_is_heard_out(mode: str) -> None:
    # What is half there may stay so for as long as a busy machine needs for the other worker.
    patient = [f"{name}_timeout={NEVER}" for name in ("graceful", "header", "body")]
    with MainProcess(mode, "drain_timeout=0", *patient) as main:
        one = main.start()
        for before, behind, path in HALVES:
            connections = [opened(main), main.connect()]
            for connection in connections:
                connection.send(before)
            opened(main).close()
            other = main.replace(one)
            for connection in connections:
                connection.send(behind)
                answer = connection.response()
                assert answer.body.strip() == b"%d %s" % (one, path)
                assert answer.get("Connection") == "close"
                assert connection.at_end()
            main.ended(one)
            assert served_by(main.connect().request("GET", "/")) == other
            one = other


def test_an_answer_that_has_begun_is_followed_by_another(main: MainProcess, tmp_path: Path) -> None:
    pid, gate = main.start(), tmp_path / "gate"
    connection = entered(main, gate, begun="/begun")
    main.stop(pid)
    gate.touch()
    answer = connection.response()
    assert answer.body.endswith(b"!")
    assert answer.get("Connection") is None
    assert connection.request("GET", "/next").get("Connection") == "close"
    assert connection.at_end()
    main.ended(pid)


def waiting(main: MainProcess, pid: int) -> Connection:
    """A connection that waits to be accepted, with its request, by a worker that is held up."""
    main.tell("kill", pid, int(signal.SIGSTOP))
    wait_for(lambda: is_stopped(pid), "the worker is held up")
    connection = main.connect()
    connection.send_request("GET", "/")
    return connection


def test_who_waits_is_left_to_the_others(main: MainProcess) -> None:
    one = main.start()
    connection = waiting(main, one)
    main.tell("say", one, "r")
    main.tell("kill", one, int(signal.SIGCONT))
    main.ended(one)
    other = main.start()
    assert served_by(connection.response()) == other


@pytest.mark.parametrize("how", [("kill", int(signal.SIGTERM)), ("leave",)])
def test_who_waits_is_let_in_if_there_are_no_others(
    main: MainProcess, how: tuple[object, ...]
) -> None:
    pid = main.start()
    connection = waiting(main, pid)
    main.tell(how[0], pid, *how[1:])
    main.tell("kill", pid, int(signal.SIGCONT))
    answer = connection.response()
    assert served_by(answer) == pid
    main.stopped(pid)
    # Unless it came first.
    if answer.get("Connection") is None:
        assert connection.request("GET", "/next").get("Connection") == "close"
    assert connection.at_end()
    main.ended(pid)


def test_a_quick_stop_hears_nobody(main: MainProcess) -> None:
    pid = main.start()
    connection = opened(main)
    main.stop(pid, signal.SIGINT)
    assert connection.at_end()
    main.ended(pid)


def test_nobody_is_heard_beyond_the_graceful_time(mode: str) -> None:
    with MainProcess(mode, "drain_timeout=" + NEVER, "graceful_timeout=0.1") as main:
        pid = main.start()
        idle, half = opened(main), opened(main)
        half.send(b"GET /half HTTP/1.1\r\n")
        main.retire(pid)
        assert idle.at_end()
        assert half.response().status == 408
        main.ended(pid)


def test_the_last_request_that_a_worker_was_made_for(mode: str) -> None:
    with MainProcess(mode, *PATIENT, "recycle_after=3") as main:
        pid = main.start()
        connection = opened(main)
        connection.request("GET", "/2")
        main.tell("say", pid, "?")
        main.expect(f"{pid} said .")
        assert not main.has_printed("said m")
        connection.request("GET", "/3")
        main.expect(f"{pid} said m")
        for number in range(4, 10):
            assert connection.request("GET", f"/{number}").get("Connection") is None
        main.tell("say", pid, "?")
        main.expect(f"{pid} said .")
        assert not main.has_printed("said m")


class Clients:
    """Clients that behave: each asks on after a pause, whatever it is told of its connection."""

    def __init__(self, main: MainProcess, pause: float) -> None:
        self.main = main
        self.pause = pause
        self.enough = Event()
        self.answers = 0

    def kept(self, at_once: int, most: int = 1) -> None:
        """So many requests at once on a connection, again and again, with less than `most` octets.

        Whoever is told that it is closed goes on with another one.
        """
        while not self.enough.is_set():
            with Connection(("127.0.0.1", self.main.port)) as connection:
                for number in count():
                    body = b"x" * (number * 997 % most)
                    method = b"POST" if body else b"GET"
                    head = b"%b / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
                    connection.send((head % (method, len(body)) + body) * at_once)
                    answers = [connection.response() for _ in range(at_once)]
                    assert [answer.status for answer in answers] == [200] * at_once
                    *others, closing = [answer.get("Connection") for answer in answers]
                    assert others == [None] * (at_once - 1)
                    self.answers += at_once
                    if closing == "close" or self.enough.wait(self.pause):
                        break

    def once(self) -> None:
        while not self.enough.wait(self.pause):
            with Connection(("127.0.0.1", self.main.port)) as connection:
                connection.request("GET", "/", "Connection: close")
                assert connection.at_end()
                self.answers += 1


@pytest.mark.each_mode
@pytest.mark.parametrize(
    ("rounds", "pause"), [(4, 0.005), pytest.param(10, 0, marks=pytest.mark.full)]
)
def test_nothing_is_lost_while_workers_come_and_go(mode: str, rounds: int, pause: float) -> None:
    with MainProcess(mode) as main, ThreadPoolExecutor(16) as pool:
        clients = Clients(main, pause)
        workers = [main.start(), main.start()]
        kinds: list[Callable[[], None]] = [
            *(partial(clients.kept, 1), partial(clients.kept, 1, 30_000)),
            *(partial(clients.kept, 5), clients.once),
        ]
        running = [pool.submit(kind) for kind in kinds for _ in range(4)]
        try:
            for _ in range(rounds):
                served = clients.answers
                workers.append(main.start())
                main.retire(workers.pop(0))
                wait_for(
                    lambda: clients.answers > served or any(one.done() for one in running),  # noqa: B023
                    "an answer of somebody",
                )
        finally:
            clients.enough.set()
        for one in running:
            one.result()
