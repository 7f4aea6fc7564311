"""The study `operate`: its steady load finds every fault, and each experiment runs."""

from __future__ import annotations

import re
import socket
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from loadtests.apps.content import content
from loadtests.arguments import choose
from loadtests.clients.steady import clients as steady
from loadtests.clients.steady import connection as line
from loadtests.clients.steady import handle
from loadtests.clients.steady.tally import Tally
from loadtests.errors import ServerFailure
from loadtests.reporting import markdown
from loadtests.servers.registry import operate
from loadtests.servers.registry.operate import OperatedServer
from loadtests.stats.results import Results
from loadtests.studies import command, engine
from loadtests.studies.operate.experiments import TINY
from loadtests.studies.operate.study import STUDY
from tests.lab.accepting import Accepting
from tests.lab.studies.small_run import lab, stored
from tests.testkit.client import HANG
from tests.testkit.server import wait_for

REQUEST = re.compile(rb"GET /small\?size=(\d+)&token=(\S+) HTTP/1\.1\r\n")

Answer = tuple[bytes, str]
"""What is sent, and what becomes of the connection: `keep`, `close` or `reset`."""


def head(token: str, length: int, *fields: str, status: str = "200 OK") -> bytes:
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Length: {length}",
        f"X-Token: {token}",
        f"X-Token-Header: {token}",
        "X-Process: 4711",
        "X-Version: 7",
        *fields,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def right(token: str, body: bytes) -> Answer:
    return head(token, len(body)) + body, "keep"


#: For each kind, what a server does that makes a client see it.
FAULTY: dict[str, Callable[[str, bytes], Answer]] = {
    "reset": lambda token, body: (b"", "reset"),
    "closed": lambda token, body: (b"", "close"),
    "short": lambda token, body: (head(token, len(body) + 1) + body, "close"),
    "malformed": lambda token, body: (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "keep"),
    "crossed": lambda token, body: right(token[:-1] + "x", body),
    "wrong": lambda token, body: right(token, b"x" + body[1:]),
    "5xx": lambda token, body: (head(token, 0, status="502 Bad Gateway"), "keep"),
    "silent": lambda token, body: (head(token, len(body))[:-2], "keep"),
    "unasked": lambda token, body: (right(token, body)[0] + b"HTTP/1.1 408 Too late\r\n", "keep"),
}


class Scripted(Accepting):
    """A server that gives each request what `answer` says; `requests` counts them."""

    def __init__(self, answer: Callable[[str, bytes], Answer]) -> None:
        self.requests = 0
        self._answer = answer
        super().__init__()

    def serve(self, connection: socket.socket) -> None:
        received = b""
        then = "keep"
        while then == "keep":
            while b"\r\n\r\n" not in received:
                try:
                    data = connection.recv(65536)
                except OSError:
                    return
                if not data:
                    return
                received += data
            asked, _, received = received.partition(b"\r\n\r\n")
            found = REQUEST.match(asked)
            assert found
            self.requests += 1
            token = found[2].decode("ascii")
            octets, then = self._answer(token, content(token, int(found[1])))
            connection.sendall(octets)
        if then == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()


Start = Callable[[Callable[[str, bytes], Answer]], Scripted]


@pytest.fixture
def scripted() -> Iterator[Start]:
    servers: list[Scripted] = []

    def start(answer: Callable[[str, bytes], Answer]) -> Scripted:
        servers.append(Scripted(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def drive(port: int, until: Callable[[Tally], object], **mix: int) -> Tally:
    """Clients in this process, until something has happened; then they end what they have begun."""
    world = steady.World(port, 10)
    clients = steady.begin(world, mix, 1)
    try:
        wait_for(lambda: until(world.tally), "what the clients are to see")
    finally:
        world.over.set()
        for client in clients:
            client.thread.join(HANG)
    return world.tally


class TestSteady:
    """Each kind of fault is seen, and nothing else is taken for one."""

    def test_every_kind_is_tried(self) -> None:
        assert {*FAULTY, "refused"} == set(line.KINDS)

    @pytest.mark.parametrize("kind", FAULTY)
    def test_a_fault(
        self,
        kind: str,
        scripted: Start,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(line, "SILENCE", 0.3 if kind == "silent" else HANG)
        asked: Counter[str] = Counter()

        def answer(token: str, body: bytes) -> Answer:
            # Each third request of a client.
            client = token.rpartition("-")[0]
            asked[client] += 1
            return (FAULTY[kind] if asked[client] % 3 == 0 else right)(token, body)

        tally = drive(scripted(answer).port, lambda tally: tally.kinds[kind] >= 2, keeping=2)
        assert set(tally.kinds) == {kind}
        fault = tally.faults[0]
        assert fault.kind == kind
        assert (fault.process, fault.sent[:7]) == (4711, "keeping")
        assert fault.port > 0
        assert fault.asked.startswith("GET /small?") or kind == "unasked"
        assert fault.opened <= fault.at

    def test_refused(self) -> None:
        with socket.socket() as bound:
            # It does not listen, and so long nobody else can.
            bound.bind(("127.0.0.1", 0))
            port = bound.getsockname()[1]
            tally = drive(port, lambda tally: tally.kinds["refused"], busy=1)
        assert set(tally.kinds) == {"refused"}

    def test_who_is_told_that_it_closes_asks_elsewhere(self, scripted: Start) -> None:
        def answer(token: str, body: bytes) -> Answer:
            return head(token, len(body), "Connection: close") + body, "close"

        server = scripted(answer)
        tally = drive(server.port, lambda tally: tally.requests >= 9, pipelining=1)
        assert not tally.kinds
        assert server.connections >= 9
        assert tally.unlucky["pipelined behind an answer that closed the connection"] >= 6

    def test_an_idle_connection_may_be_closed(self, scripted: Start) -> None:
        server = scripted(lambda token, body: (right(token, body)[0], "close"))
        world = steady.World(server.port, 10)
        client = steady.Client(world, "thinking", 0, 1)
        for number in range(3):
            client.turn()
            opened = client.line
            assert opened is not None
            wait_for(opened.ended, "the end of the connection")
            assert world.tally.unlucky["idle connection closed"] == number
        client.hang_up()
        assert world.tally.requests == 3

    def test_what_was_lost_with_a_process(self) -> None:
        death = handle.Death(7, 10.0, frozenset({1000, 1001}))

        def fault(port: int, opened: float) -> line.Fault:
            return line.Fault("reset", "", "busy0", "GET /", 1, 11.0, opened, port, 7, 1)

        lost, other, later = fault(1000, 9.0), fault(1002, 9.0), fault(1001, 10.5)
        assert handle.unexplained([lost, other, later], [death]) == [other, later]
        before = replace(lost, at=9.5)
        assert handle.unexplained([before], [death]) == [before]


FREE = {"server_core": None, "client_core": None}


def planned(lab: engine.Lab, name: str, chosen: Sequence[OperatedServer]) -> list[engine.Step]:
    return STUDY.plan(lab, TINY, chosen, Namespace(names=[name]))


class TestExperiments:
    """In small, with our own server; that nothing fails is what the server promises."""

    def measure(self, name: str, tmp_path: Path, mode: str = "forking") -> Results:
        chosen = [one for one in STUDY.servers() if one.name == f"poorhttp {mode}"]
        # Fewer clients than usual: the machine has other tests to run.
        few = [replace(one, clients=dict.fromkeys(one.clients, 1)) for one in chosen]
        with lab(tmp_path, 1, **FREE) as small:
            for step in planned(small, name, few):
                step.action()
        return stored(small)

    @pytest.mark.parametrize(
        ("name", "mode"),
        [
            ("reload", "forking"),
            ("kill", "forking"),
            ("reload", "threading h2"),
            ("upgrade", "threading h2c"),
            ("recycle", "forking h2c"),
            ("stop", "gevent h2"),
        ],
    )
    def test_nothing_fails(self, name: str, mode: str, tmp_path: Path) -> None:
        results = self.measure(name, tmp_path, mode)
        server = results.figures[0]["server"]
        assert results.values(name, server, "requests")[0] > 0
        assert results.values(name, server, "failed") == [0], results.faults
        text = re.sub(" +", " ", markdown.tables(command.sections(results, [STUDY])))
        assert f"`python -m loadtests operate {name}`" in text

    def test_a_server_that_dies_is_no_result(self, tmp_path: Path) -> None:
        [one] = choose("server", operate.SERVERS, ["poorhttp single"])
        dying = replace(one, command="{python} -c raise~SystemExit(3)")
        with lab(tmp_path, 1, **FREE) as small:
            [step] = planned(small, "stop", [dying])
            with pytest.raises(ServerFailure, match="exit code 3"):
                step.action()
