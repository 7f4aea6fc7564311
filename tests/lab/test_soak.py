"""The soak: a short run, and detection of every fault."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

from loadtests import __main__, store
from loadtests.apps.content import BLOCK, content, pieces
from loadtests.clients.connection import unverified
from loadtests.clients.steady import known_requests
from loadtests.clients.steady.known_requests import Question, Wrong, unchunked
from loadtests.soak import command, refused
from loadtests.soak.client import DEATH, TURNOVER, Dialogue, World
from loadtests.soak.error_log_check import ErrorLogCheck
from loadtests.soak.gauge import Reading, growth
from loadtests.soak.incidents import PHASES, schedule
from loadtests.soak.run import Plan, Soak
from tests.lab import refused_requests
from tests.support.certificate import certificate
from tests.testkit.client import Response

#: Crosses two answers, writes to the log, and leaks descriptors once a file beside it says that
#: they have been counted.
WRONG = """
import itertools
import os
from loadtests.apps import mixed

numbers = itertools.count(1)
earlier = []
leaked = []
quiet = os.path.join(os.path.dirname(__file__), "quiet")

def application(environ, start_response):
    query, path = environ["QUERY_STRING"], environ["PATH_INFO"]
    if path == "/small":
        number = next(numbers)
        if number % 50 == 0:
            environ["QUERY_STRING"] = earlier[0]
        earlier[:] = [query]
        if not leaked and os.path.exists(quiet):
            leaked[:] = [os.open(os.devnull, os.O_RDONLY) for _ in range(200)]
    elif path == "/measured":
        environ["wsgi.errors"].write("Exception ignored in: something\\n")
    return mixed.application(environ, start_response)
"""


#: Ends a main process that has taken over, and tells how that has ended.
SUCCESSOR = """
import os, pathlib, signal, sys
from loadtests.measure import disturbance
from loadtests.measure.process_tree import have_ended
from loadtests.servers.poorhttp_server import PoorhttpServer

disturbance.adopt()
with PoorhttpServer("loadtests/apps/mixed.py", "--pidfile", sys.argv[1]) as server:
    server.upgrade(pathlib.Path(sys.argv[1]), 240)
    server.process.wait(240)
    os.kill(server.main, signal.SIGKILL)
    have_ended([server.main], 240)
    print(server.how_it_ended())
"""


def test_a_short_soak(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one of the modes of `make soak`; then the page about it."""
    path = tmp_path / "soak.jsonl"
    # Three seconds: shorter than a soak that is worth the name.
    monkeypatch.setattr(command, "_minutes", float)
    monkeypatch.setattr("loadtests.measure.disturbance.adopt", lambda: None)
    words = ["--minutes", "0.05", "--modes", "forking", "--output", str(path)]
    monkeypatch.setattr(sys, "argv", ["loadtests", "soak", *words])
    code = __main__.main()
    said = capsys.readouterr()
    assert code == 0, said.err
    assert re.search(r"\| answers that were wrong, crossed or missing +\| +0 \|", said.out)
    [outcome] = [r for r in store.load([path]) if r["record"] == "outcome"]
    by_chance = {known_requests.Nature.DIED, known_requests.Nature.NO_ROOM}
    assert set(known_requests.Nature) - by_chance <= {
        known_requests.Nature(name) for name in outcome["natures"]
    }
    [done] = [r for r in store.load([path]) if r["record"] == "done"]
    assert 0 <= done["machine"]["others"] <= 1
    assert outcome["faults"]
    assert outcome["killed"]["worker"] > 0
    assert outcome["incidents"]["upgrade"] > 0
    assert outcome["incidents"]["reload"] > 0
    assert re.search(r"\| workers killed and replaced +\| +1 \|", said.out)
    assert "a refusal by the server" in said.out
    assert re.search(r"\d s done, 0 s left; [\d,]+ right, 0 wrong; upgrade 1/1, ", said.err)
    words = ["report", str(path), "--plots", str(tmp_path / "plots")]
    monkeypatch.setattr(sys, "argv", ["loadtests", *words])
    assert __main__.main() == 0
    ElementTree.parse(tmp_path / "plots" / "soak.svg")


def test_malformed_requests_are_those_of_the_protocol_cases() -> None:
    """`python -m tests.lab.refused_requests` writes them anew."""
    assert refused.FILE.read_text(encoding="ascii") == refused_requests.text()
    assert [(one.send, one.statuses) for one in refused.refused()] == [
        (case.send, tuple(status for status in case.statuses if status >= 200))
        for case in refused_requests.refused_cases()
    ]


def test_what_a_soak_notices(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(WRONG)
    plan = Plan("single", 1, str(tmp_path / "wrong.py"))
    # Nothing happens to this server, and most requests come behind the first quiet moment.
    plan.step, plan.warm_up = 10.0, 0.1

    def said(line: str) -> None:
        if line.endswith(", quiet"):
            (tmp_path / "quiet").touch()

    with closing(store.Store(tmp_path / "soak.jsonl", "test")) as keeping:
        failures = "\n".join(Soak(plan, keeping, said).run())
    for noticed in (
        "it is the answer to ",
        "unexpected in the log: .*Exception ignored",
        "descriptors: ",
    ):
        assert re.search(f"(?s){noticed}", failures), failures


# Answers


def asked() -> Question:
    return known_requests.in_pieces("streamed")("mine", Random(1))


def answer(body: bytes, token: str = "mine", **more: str) -> Response:
    headers = [("X-Token", token), ("X-Token-Header", token), *more.items()]
    return Response(200, "OK", headers, body)


RIGHT = asked().body


def test_content_belongs_to_its_token_and_place() -> None:
    whole = content("a", 3 * BLOCK)
    parts = [whole[at : at + BLOCK] for at in range(0, len(whole), BLOCK)]
    assert len({*parts, content("b", BLOCK)}) == 4
    assert content("a", 10) == whole[:10]
    assert b"".join(pieces("a", (1, 5000, 3))) == whole[:5004]


def test_a_right_answer() -> None:
    asked().check(answer(RIGHT))
    asked().check_part(
        b"HTTP/1.1 200 OK\r\nX-Token: mine\r\nX-Token-Header: mine\r\n\r\n" + RIGHT[:99]
    )
    asked().check_part(b"HTTP/1.1 2")


@pytest.mark.parametrize(
    "wrong",
    [
        answer(RIGHT, "other"),
        answer(content("other", len(RIGHT))),
        answer(RIGHT[:-1]),
        answer(RIGHT + b"."),
        answer(RIGHT[:BLOCK] + RIGHT[2 * BLOCK : 3 * BLOCK] + RIGHT[2 * BLOCK :]),
        answer(RIGHT, **{"X-Injected": "1"}),
        answer(RIGHT, Connection="close"),
        Response(500, "Internal Server Error", [], known_requests.FAILED),
    ],
)
def test_a_wrong_answer(wrong: Response) -> None:
    with pytest.raises(Wrong):
        asked().check(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        b"HTTP/1.1 500 ",
        b"HTTP/1.1 200 OK\r\nX-Token: other\r\nX-Token-Header: other\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Token: mine\r\nX-Token-Header: mine\r\n\r\n" + content("other", 9),
        b"HTTP/1.1 200 OK\r\nX-Token: mine\r\nX-Token-Header: mine\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n2\r\nmi\r\n2\r\nmi\r\n",
    ],
)
def test_the_beginning_of_a_wrong_answer(wrong: bytes) -> None:
    with pytest.raises(Wrong):
        asked().check_part(wrong)


def test_chunks_that_end_anywhere() -> None:
    data = b"5\r\nhello\r\n3\r\n wo\r\n"
    for end in range(len(data)):
        assert b"hello wo".startswith(unchunked(data[:end]))
    assert unchunked(data) == b"hello wo"
    with pytest.raises(Wrong):
        unchunked(b"5\r\nhello!\r\n")


def test_what_the_end_of_a_worker_explains() -> None:
    world = World({}, 0, print)
    assert not world.explains(0.0)
    with world.during(DEATH):
        assert world.explains(float(1 << 60))
    assert world.explains(0.0)
    assert not world.explains(float(1 << 60))
    assert not world.explains(0.0, TURNOVER)
    assert World({}, 0, print, always=[TURNOVER]).explains(0.0, TURNOVER)


def test_what_is_said_over_tls_to_a_process_that_has_died() -> None:
    """Nothing is wrong with that: the end is seen where an answer is due."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate().issued.configure_cert(context)
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as pool:
        port = listener.getsockname()[1]
        opens = pool.submit(Dialogue, port, unverified())
        accepted = listener.accept()[0]
        tls = context.wrap_socket(accepted, server_side=True)
        with closing(opens.result()) as dialogue:
            dialogue.say(b"one")
            assert tls.recv(3) == b"one"
            # Without the last word of TLS.
            tls.close()
            for _ in range(3):
                dialogue.say(b"two" * 1_000_000)


def test_a_reload_that_begins_while_an_answer_is_awaited() -> None:
    """It explains that the connection ends behind the answer."""
    world = World({}, 0, print)
    asked = Question("small", "t", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"ok")
    tokens = b"X-Token: t\r\nX-Token-Header: t\r\nContent-Length: 2\r\n"
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        ThreadPoolExecutor() as pool,
        closing(Dialogue(listener.getsockname()[1])) as dialogue,
    ):
        closes = partial(world.explains, dialogue.opened, TURNOVER)
        goes_on = pool.submit(dialogue.answer, asked, closes)
        with listener.accept()[0] as accepted, world.during(TURNOVER):
            accepted.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + tokens + b"\r\nok")
        assert goes_on.result() is False


def test_a_schedule_has_every_incident() -> None:
    """Workers, and the main process, live through the rest of the time."""
    for seconds, step in ((3.0, 0.6), (7_200.0, 15.0)):
        planned = schedule(seconds, step)
        assert {kind for _, kind in planned} == {kind for _, kinds in PHASES for kind in kinds}
        last = {kind: at for at, kind in planned}
        assert last["upgrade"] <= 0.2 * seconds
        assert last["reload"] <= 0.4 * seconds


# The log


def judged(tmp_path: Path, text: str) -> ErrorLogCheck:
    path = tmp_path / "error.log"
    path.write_text(text)
    check = ErrorLogCheck(path)
    check.read(end=True)
    return check


HEAD = "2026-11-20T09:27:42Z [4711 worker 1] "
TRACEBACK = "    Traceback (most recent call last):\n      File x\n    "


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}info: request 7 of 127.0.0.1:9: refused with 400 (a bare line feed)\n",
        f"{HEAD}info: request 7 of 127.0.0.1:9: the client does not read its response\n",
        f"{HEAD}error: worker 7 was killed by SIGABRT and is replaced\n",
        f"{HEAD}error: request 7 GET /exits?token=a: the application failed\n"
        f"{TRACEBACK}SystemExit: 3\n",
    ],
)
def test_expected_lines(tmp_path: Path, text: str) -> None:
    check = judged(tmp_path, text * 2)
    assert (check.unexpected, sum(check.counts.values())) == ([], 2)


@pytest.mark.parametrize(
    "text",
    [
        "thread '<unnamed>' panicked at core/http/src/lib.rs:1:1:\n",
        f"{HEAD}info: request 7 of 127.0.0.1:9: refused with 400 (x)\nException ignored in: y\n",
        f"{HEAD}error: worker 7 was killed by SIGSEGV and is replaced\n",
        f"{HEAD}error: request 7 GET /small?token=a: the application failed\n"
        f"{TRACEBACK}SystemExit: 3\n",
        f"{HEAD}error: request 7 GET /exits?token=a: the application failed\n"
        f"{TRACEBACK}KeyError: 3\n",
    ],
)
def test_unexpected_lines(tmp_path: Path, text: str) -> None:
    assert len(judged(tmp_path, text).unexpected) == 1


# Growth


def readings(*quiet: Reading, load: int = 20) -> list[Reading]:
    """Quiet moments with load between them that does not change."""
    found = [quiet[0]]
    for reading in quiet[1:]:
        found += [
            Reading(reading.at, False, each={"1": (60 << 20, 40)}, descriptors=40)
            for _ in range(load)
        ]
        found.append(reading)
    return found


def quiet(at: float, mebibytes: int = 50, descriptors: int = 10, process: str = "1") -> Reading:
    memory = mebibytes << 20
    return Reading(at, True, descriptors=descriptors, each={process: (memory, descriptors)})


def test_nothing_has_grown() -> None:
    assert growth(readings(quiet(1), quiet(2, 54), quiet(3, 54))) == []


def test_a_warm_up_is_no_leak() -> None:
    """Both end with the same memory."""
    slower = [quiet(at, size) for at, size in enumerate((50, 60, 65, 67, 68, 68))]
    assert growth(readings(*slower)) == []
    steady = [quiet(at, size) for at, size in enumerate((50, 54, 57, 61, 64, 68))]
    assert growth(readings(*steady)) == ["memory when quiet: from 52.0 to 66.0 MiB"]


def test_what_replaces_processes_ends_before_memory_is_judged() -> None:
    """Memory of the main process counts from one time on, that of workers from a later one."""
    found = [quiet(1, 10, process="1"), quiet(2, 90, process="2"), quiet(3, 90, process="2")]
    assert growth(readings(*found), calm=[0.0]) == ["no process lived all the time"]
    for one in found[1:]:
        one.each["1"] = (10 << 20, 10)
    assert growth(found, calm=[0.0, 1.5]) == []


def test_how_a_successor_has_ended(tmp_path: Path) -> None:
    """Of a main process that has taken over the exit code is known to who adopts it."""
    ended = subprocess.run(
        [sys.executable, "-c", SUCCESSOR, str(tmp_path / "pid")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ended.stdout.startswith("exit code -9:\npoorhttp ")


@pytest.mark.parametrize(
    ("found", "what"),
    [
        (readings(quiet(1), quiet(2, descriptors=11)), "descriptors: 10 at first, 11"),
        (readings(quiet(1), quiet(2, 62)), "memory when quiet: from 50.0 to 62.0 MiB"),
        (readings(quiet(1), quiet(2, process="2")), "no process lived all the time"),
        (readings(quiet(1)), "there were not two quiet moments"),
    ],
)
def test_growth(found: list[Reading], what: str) -> None:
    assert any(line.startswith(what) for line in growth(found))


def test_growth_under_load() -> None:
    found = readings(quiet(1), quiet(2), quiet(3), quiet(4), quiet(5))
    for reading in found[-20:-1]:
        reading.each = {"1": (79 << 20, 40)}
        reading.descriptors = 60
    assert growth(found) == [
        "memory under load: from 60.0 to 79.0 MiB",
        "descriptors under load: from 40.0 to 60.0",
    ]
