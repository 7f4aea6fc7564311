"""The clients of the load lab: requests, counts and reports."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import cycle
from pathlib import Path

import psutil
import pytest

from loadtests.clients import external, locust, program, python_client
from loadtests.clients.load import KINDS, Job, Load
from loadtests.clients.locust import swarm
from loadtests.clients.locust.swarm import Outcome, Report
from loadtests.clients.native import fetch, replay
from loadtests.clients.native.fetch import FIELDS, MAGIC, Trace, read_trace
from loadtests.clients.native.replay import Request
from loadtests.clients.registry import CLIENTS, Client
from loadtests.errors import LabError
from loadtests.replay import chain
from loadtests.replay.chain import Link
from loadtests.servers import registry
from loadtests.servers.application import OWN
from loadtests.servers.registry.given import Given
from loadtests.servers.running import Running
from loadtests.studies.bench.scenarios import HELLO
from tests.lab.accepting import Accepting
from tests.testkit.client import HANG
from tests.testkit.server import wait_for


@pytest.fixture(scope="module")
def floor() -> Iterator[Running]:
    """The server that is never the limit."""
    with Running(registry.FLOOR, HELLO) as running:
        yield running


@pytest.fixture(scope="module")
def single() -> Iterator[Running]:
    """A server that speaks all that clients do."""
    (server,) = registry.named(["poorhttp single"])
    with Running(server, HELLO) as running:
        yield running


@contextmanager
def silent() -> Iterator[int]:
    """A port where connections are made and nothing is answered."""
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as listener:
        yield listener.getsockname()[1]


class Answering(Accepting):
    """Gives one of these answers in turn on each connection, and closes it.

    One that `awaits` takes another request behind an answer, and closes instead of answering it.
    """

    def __init__(self, *answers: bytes, awaits: bool = False) -> None:
        self.answers, self.awaits = cycle(answers), awaits
        self.asked: list[bytes] = []
        super().__init__()

    def serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            if request := connection.recv(65536):
                self.asked.append(request)
                connection.sendall(answer := next(self.answers))
                if self.awaits and answer:
                    connection.recv(65536)


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def closed() -> Iterator[int]:
    """A port where nobody listens, and nobody can: it is bound."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


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
        assert self.known.connect() == [30, 0]
        assert self.known.processing() == [60, 100_100]
        assert self.known.answer() == [90, 100_050]
        assert self.known.total() == [100, 100_100]

    def test_failures_by_kind(self) -> None:
        assert self.known.failed() == {"connect": 1, "status": 1, "timeout": 1}

    def test_a_file_that_is_not_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "trace"
        header = [MAGIC, 1, 7, 2_000_000_000, 1, 0, 0, 0, 0]
        path.write_bytes(array("Q", header + list(range(FIELDS))).tobytes())
        assert read_trace(path).seconds == 2
        assert read_trace(path).stopped
        for numbers in (header, [*header, 1], [8, *header[1:], *range(FIELDS)], []):
            path.write_bytes(array("Q", numbers).tobytes())
            with pytest.raises(LabError, match="the trace trace is not whole"):
                read_trace(path)


class TestTraced:
    def check(self, found: fetch.Traced, *, requests: int) -> None:
        seen = found.trace
        assert (len(seen), found.load.requests, seen.failed()) == (requests, requests, {})
        assert set(seen.status) == {200}
        assert sum(seen.octets) == found.load.octets
        assert list(seen.intended) == sorted(seen.intended)
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
        found = fetch.traced(floor.port, 0.2, 1, [["/"]], rate=200, most_unanswered=1000)
        self.check(found, requests=40)
        assert list(found.trace.intended) == [n * 5000 for n in range(40)]

    def test_the_older_protocol_in_small_pieces(self) -> None:
        answer = b"HTTP/1.0 200 OK\r\n\r\n" + bytes(100_000)
        with closing(Answering(answer)) as server:
            found = fetch.traced(
                server.port,
                HANG,
                1,
                [["/a", "/b", "/c"]],
                requests=3,
                old=True,
                receive=8192,
                keep=True,
            )
        self.check(found, requests=3)
        assert set(found.trace.octets) == {100_019}
        assert server.asked[1] == b"GET /b HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"

    def test_a_server_that_keeps_no_connection(self) -> None:
        """It says so, in each version of the protocol, and is connected to anew."""
        answers = [
            b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        ]
        with closing(Answering(*answers)) as server:
            found = fetch.traced(server.port, HANG, 1, [["/a", "/b"]], requests=4, keep=True)
        self.check(found, requests=4)

    def test_too_many_unanswered(self) -> None:
        with silent() as port:
            found = fetch.traced(port, HANG, 10, [["/"]], every=0.05, most_unanswered=35)
        assert found.trace.stopped
        assert found.load.errors == found.trace.failed() == {"timeout": 35}
        # Long before all of the time that there was.
        assert found.trace.seconds < HANG
        assert found.trace.total() == []

    def test_clients_that_give_up(self) -> None:
        with silent() as port:
            found = fetch.traced(port, 0.3, 1, [["/"]], rate=50, most_unanswered=99, give_up=0.1)
        seen = found.trace
        assert found.load.errors == seen.failed() == {"timeout": len(seen)}
        waited = [end - begin for begin, end in zip(seen.intended, seen.ended, strict=True)]
        assert min(waited) >= 100_000
        # Not at the end, when all that is unanswered is given up, after five seconds.
        assert seen.seconds < fetch.PATIENCE

    def test_nobody_listens(self, closed: int) -> None:
        found = fetch.traced(closed, HANG, 2, [["/"]], requests=50)
        assert found.load.errors == {"connect": 50}
        assert set(found.trace.kind) == {KINDS.index("connect")}


class TestAServerThatClosesWithoutAWord:
    """Requests of one connection, which come at once."""

    @pytest.mark.parametrize(
        ("methods", "answered", "errors", "unsaid"),
        [
            (["GET"] * 5, [True] * 5, {}, 4),
            (["GET", "POST", "GET"], [True, True], {"read": 1}, 0),
            # The first on its connection, and one that was sent again.
            (["GET", "GET"], [False, True], {"read": 1}, 0),
            (["GET", "GET", "GET"], [True, False, True], {"read": 1}, 1),
        ],
    )
    def test_what_is_sent_again(
        self, methods: list[str], answered: list[bool], errors: dict[str, int], unsaid: int
    ) -> None:
        requests = [Request(f"/{number}", method) for number, method in enumerate(methods)]
        answers = [OK * one for one in answered]
        with closing(Answering(*answers, awaits=True)) as server:
            seen = replay.drive(server.port, 0.1, 1, requests, moments=[0.0] * len(requests))
        assert (seen.load.requests, seen.load.errors) == (sum(answered), errors)
        assert (seen.load.opened, seen.load.unsaid) == (len(answers), unsaid)
        right = [one.octets() for one in requests if one.method != "POST"]
        assert server.asked == right
        assert len(seen.outcomes) == len(requests)

    def test_visits(self) -> None:
        links = [Link("/a"), Link("/b"), Link("/c")]
        server = Answering(OK, awaits=True)
        with closing(server):
            place = ("127.0.0.1", server.port)
            seen, _ = chain.drive(place, "host", links, [0.0, 0.0], 2, None)
            posted, _ = chain.drive(place, "host", [*links, Link("/", "POST")], [0.0], 2, None)
        assert (seen.load.requests, seen.load.errors) == (2, {})
        assert (seen.load.opened, seen.load.unsaid) == (6, 4)
        assert list(posted.load.errors) == ["POST /: RemoteDisconnected"]

    def test_it_is_told(
        self, lab: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        line = '127.0.0.1 - - [12/Nov/2026:10:00:00 +0000] "GET /{} HTTP/1.1" 200 2 "-" "-"\n'
        log = tmp_path / "access.log"
        log.write_text("".join(line.format(number) for number in range(10)))
        server = Answering(OK, awaits=True)
        words = [f"--url=http://127.0.0.1:{server.port}", f"--output={tmp_path / 'results.jsonl'}"]
        with closing(server):
            assert lab("replay", str(log), *words, "--connections=1") == 0
        assert (
            "The server closed 9 of 10 connections behind a response without saying so"
            in capsys.readouterr().out
        )

    def test_uwsgi(self, tmp_path: Path) -> None:
        program = Path(sys.executable).with_name("uwsgi")
        if not program.is_file():
            pytest.skip("uwsgi is not installed")
        file = tmp_path / "app.py"
        file.write_text("def application(_, start):\n    start('200 OK', [])\n    return [b'ok']\n")
        command = f"{program} --http-socket {{host}}:{{port}} --wsgi-file {file}"
        with Running(Given("uwsgi", "", command, application=OWN, target="/")) as one:
            requests = [Request(f"/{number}") for number in range(30)]
            seen = replay.drive(one.port, 0.1, 2, requests, moments=[0.0] * 30)
        assert (seen.load.requests, seen.load.errors) == (30, {})


class TestHeaders:
    own = ("-H", "host: shop.example", "--header=Cookie:a=b")

    def run(self, lab: Callable[..., int], tmp_path: Path, *words: str) -> list[bytes]:
        """The heads that a server sees from a command, whatever it finds."""
        server = Answering(OK, awaits=True)
        url, output = f"http://127.0.0.1:{server.port}", f"--output={tmp_path / 'results.jsonl'}"
        with closing(server):
            lab(*(word.format(url=url) for word in words), *self.own, output)
        return server.asked

    @pytest.mark.parametrize(
        "words",
        [
            ["load", "{url}", "--seconds=0.3"],
            ["load", "{url}", "--seconds=0.3", "--rate=50"],
            ["load", "{url}", "--seconds=0.3", "--rate=50", "--chain=log"],
            ["replay", "log", "--url={url}"],
            ["compare", "a={url}", "b={url}", "--rounds=1", "--seconds=0.1"],
            ["advise", "--url={url}", "--budget=2"],
        ],
        ids=["closed", "rate", "chain", "replay", "compare", "advise"],
    )
    def test_each_request_has_them(
        self,
        words: list[str],
        lab: Callable[..., int],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        headers = {} if "--chain=log" in words else {"Host": "other", "cookie": "c"}
        asked = {"target": "/", "headers": headers, "time": "2026-11-30T10:00:00Z"}
        Path("log").write_text(json.dumps(asked if headers else {"target": "/"}))
        heads = self.run(lab, tmp_path, *words)
        assert heads
        # The values may be secret.
        results = (tmp_path / "results.jsonl").read_text()
        assert "-H host:… --header Cookie:…" in results.replace("\\u2026", "…")
        for head in heads:
            fields = [line.lower() for line in head.split(b"\r\n")]
            hosts = [line for line in fields if line.startswith(b"host:")]
            cookies = [line for line in fields if line.startswith(b"cookie:")]
            assert (hosts, cookies) == ([b"host: shop.example"], [b"cookie: a=b"])

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("Host", "it is written 'NAME: VALUE'"),
            ("a b: c", "it is written 'NAME: VALUE'"),
            ("a: b\r\nc: d", "it is written 'NAME: VALUE'"),
            ("a: \u20ac", "it is written 'NAME: VALUE'"),
            ("content-length: 3", "content-length is what the client says itself"),
        ],
    )
    def test_what_is_none(
        self, text: str, problem: str, lab: Callable[..., int], capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit):
            lab("load", "http://127.0.0.1:1", "-H", text)
        assert problem in capsys.readouterr().err

    def test_an_unknown_option_is_named_before_its_value(
        self, lab: Callable[..., int], capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit):
            lab("load", "--url=http://127.0.0.1:1", "--heading", "Host: shop.example")
        assert "there is no option --heading; did you mean" in capsys.readouterr().err


RECORDED = Path(__file__).with_name("recorded")


def recorded(name: str) -> str:
    return (RECORDED / f"lab-{name}").read_text(encoding="ascii")


PARSERS = (external.parse_ab, external.parse_httperf, external.parse_h2load, program.parse)


class TestParsers:
    """Of what the programs printed once."""

    def test_ab(self) -> None:
        load = external.parse_ab(recorded("ab.txt"), recorded("ab.csv"), 0.013)
        assert (load.requests, load.octets, load.seconds) == (500, 78_500, 0.026)
        times = (load.p50_us, load.p99_us, load.max_us)
        assert times == pytest.approx((186, 8034, 8118))
        assert (load.mean_us, load.errors, load.busy) == (523, {}, 0.5)

    def test_ab_with_failures(self) -> None:
        load = external.parse_ab(recorded("ab-failures.txt"))
        assert (load.requests, load.errors) == (20, {"status": 10})
        assert (load.p50_us, load.max_us, load.busy) == (0, 0, 0)
        refused = "Complete requests:      30\n   (Connect: 0, Receive: 30, Exceptions: 15)\n"
        load = external.parse_ab(refused)
        assert (load.requests, load.errors) == (0, {"read": 30})

    def test_httperf(self) -> None:
        load = external.parse_httperf(recorded("httperf.txt"), 0.491)
        assert (load.requests, load.octets, load.seconds) == (2161, 2161 * 133, 0.491)
        assert (load.mean_us, load.p50_us, load.errors, load.busy) == (500, 0, {}, 1)

    def test_httperf_with_failures(self) -> None:
        load = external.parse_httperf(recorded("httperf-failures.txt"))
        assert (load.requests, load.errors) == (10, {"read": 10, "status": 10})

    def test_h2load(self) -> None:
        text = recorded("h2load.txt")
        load = external.parse_h2load(text, 0.25)
        assert load.requests == int(text.split("requests: ")[1].split()[0])
        assert load.octets == load.requests * 133
        assert load.seconds == pytest.approx(0.5, abs=0.1)
        assert 0 < load.mean_us < load.max_us
        assert load.errors == {}

    def test_h2load_with_failures(self) -> None:
        load = external.parse_h2load(recorded("h2load-failures.txt"))
        assert 0 < load.requests < 30
        assert set(load.errors) <= {"read", "status", "timeout"}
        assert load.errors["status"] > 0

    def test_h2load_without_the_end_of_some(self) -> None:
        """Requests under way when the time is over have a status, and no end."""
        text = recorded("h2load.txt")
        succeeded = int(text.split(" succeeded,")[0].split()[-1])
        cut = text.replace(f"{succeeded} succeeded", f"{succeeded - 7} succeeded")
        assert external.parse_h2load(cut).requests == succeeded - 7

    def test_times_of_h2load(self) -> None:
        told = [external.microseconds(text) for text in ("238us", "2.42ms", "1.5s", "2m", "?")]
        assert told == [238, 2420, 1_500_000, 120e6, 0]

    @pytest.mark.parametrize("parse", PARSERS)
    def test_no_result(self, parse: Callable[[str], Load]) -> None:
        with pytest.raises(LabError, match="gave no result; it said: one / two / three"):
            parse("zero\none\ntwo\nthree\n")

    def test_our_line(self) -> None:
        seen = python_client.Seen([0.001, 0.003], [0.002, 0.004], 300, Counter(read=2))
        load = program.parse(seen.line(2.0, 0.5), 17.0)
        times = {"mean_us": 3000, "p50_us": 2000, "p99_us": 2000, "max_us": 4000, "answer_us": 2000}
        assert load == Load(2, 2.0, 300, errors={"read": 2}, busy=0.25, **times)


class TestPrograms:
    def test_an_interrupt_waits_until_a_program_bears_it(self) -> None:
        # Each `env` executes the next one: it takes a while until the last ignores interrupts.
        command = [*["env"] * 200, *external.DEAF, "sh", "-c", "sleep 0.1; echo result"]
        output, _ = program.outcome(command, 0, None, interrupt=True)
        assert output.splitlines()[0] == "result"

    def test_how_a_program_without_a_result_has_ended(self) -> None:
        for script, ended in (("kill -9 $$", "killed by SIGKILL"), ("exit 3", "exit code 3")):
            with pytest.raises(LabError, match=rf"it said: {ended} after \d+\.\d s"):
                program.run(["sh", "-c", script], 1, None)


def client(name: str) -> Client:
    return next(one for one in CLIENTS if one.name == name)


FAILED = b"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nno"

#: Asks a server, and one that does not listen.
TWO = """
from locust import FastHttpUser, task

class Visitor(FastHttpUser):
    @task
    def visit(self):
        self.client.get("/")
        self.client.get("http://127.0.0.1:{closed}/")
"""

#: Tried with a connection for each request; the others keep theirs.
CLOSED = ("ours serial", "ours threads", "ab", "Locust")


class TestClients:
    """Each against a server, where it is installed; whether its figures can be."""

    @pytest.mark.parametrize(
        ("one", "keep"),
        [
            (one, keep)
            for one in CLIENTS
            for keep in (True, False)
            # Most programs are told by one option; ours for studies is tried both ways.
            if one.name == "fetch" or keep == (one.name not in CLOSED)
        ],
        ids=lambda value: getattr(value, "name", "kept" if value else "closed"),
    )
    def test_a_job(self, single: Running, one: Client, keep: bool) -> None:
        if reason := one.missing():
            pytest.skip(reason)
        # The processes of Locust do not begin at once where all cores are shared.
        seconds = 1.0 if one.name.startswith("Locust") else 0.1
        job = Job(single.port, connections=4, seconds=seconds, keep=keep)
        load = one.drive(job, None)
        assert load.requests > 0
        assert load.errors == {}
        assert load.seconds > 0
        assert load.rate == pytest.approx(load.requests / load.seconds)
        assert load.octets >= load.requests * len(single.answer.body)
        assert load.mean_us > 0
        assert 0 <= load.p50_us <= load.p99_us <= load.max_us or not load.p99_us
        assert load.busy > 0

    @pytest.mark.parametrize("way", ["ours serial", "ours threads", "fetch", "httperf"])
    def test_a_wrong_answer_is_none(self, way: str) -> None:
        one = client(way)
        if reason := one.missing():
            pytest.skip(reason)
        with closing(Answering(FAILED)) as server:
            load = one.drive(Job(server.port, connections=2, seconds=0.3, keep=False), None)
        assert load.requests == 0
        assert load.errors["status"] > 0

    @pytest.mark.parametrize("way", ["ours serial", "ours threads", "fetch"])
    def test_nobody_listens(self, way: str, closed: int) -> None:
        load = client(way).drive(Job(closed, connections=2, seconds=0.2), None)
        assert (load.requests, set(load.errors)) == (0, {"connect"})


class TestLocust:
    def test_a_wrong_answer_and_nobody_who_listens(self, closed: int, tmp_path: Path) -> None:
        file = tmp_path / "two.py"
        file.write_text(TWO.format(closed=closed))
        with closing(Answering(FAILED)) as server:
            load = locust.own(file, f"http://127.0.0.1:{server.port}", 2, 0.3)
        assert (load.requests, set(load.errors)) == (0, {"status", "connect"})

    def test_a_file_that_is_broken(self, tmp_path: Path) -> None:
        with pytest.raises(LabError, match="does not exist"):
            locust.own(tmp_path / "none.py", "http://127.0.0.1:1", 1, 0.1)
        file = tmp_path / "broken.py"
        file.write_text("import nothing_of_this_name\n")
        with pytest.raises(LabError, match=r"locust gave no result; .* nothing_of_this_name"):
            locust.own(file, "http://127.0.0.1:1", 1, 0.1)

    def test_nothing_is_left_of_what_hangs(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        # `python -m locust` runs this file itself, which is in the folder in which it begins.
        file = tmp_path / "locust.py"
        mark = tmp_path / "process"
        file.write_text(
            "import os, pathlib, threading\n"
            f"pathlib.Path({str(mark)!r}).write_text(str(os.getpid()))\n"
            "threading.Event().wait()\n"
        )
        wait = swarm._wait

        def impatient(process: subprocess.Popen[bytes], _: float, folder: Path | None) -> None:
            wait_for(lambda: mark.exists() and mark.read_text(), "Locust to begin")
            wait(process, 0.1, folder)

        monkeypatch.setattr(swarm, "_wait", impatient)
        with pytest.raises(LabError, match="locust gave no result"):
            locust.own(file, "http://127.0.0.1:1", 1, 0.1)
        assert not psutil.pid_exists(int(mark.read_text()))

    def test_what_ended_outside_does_not_count(self) -> None:
        report = Report(
            1.0, [9.0, 10.5, 11.0, 12.5], [1.0, 2.0, 5.0, 1.0], [1, 2, 4, 8], [0, 0, 4, 0]
        )
        load = swarm.load(Outcome(10.0, 12.0, 1.0, [report]))
        assert (load.requests, load.octets, load.errors) == (1, 6, {"status": 1})
        assert (load.mean_us, load.seconds, load.busy) == (2000, 2, 0.5)
