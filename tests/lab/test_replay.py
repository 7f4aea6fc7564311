"""`replay` and `load`: requests come at their times, and the report is made."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from loadtests import programs, store
from loadtests.advise.workload import timed
from loadtests.clients.load import KINDS, Load
from loadtests.clients.native.replay import Outcome, Request, Seen
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import disturbance, histogram, system_calls
from loadtests.replay import chain, gate, outcomes
from loadtests.replay.command import arrivals
from loadtests.replay.gate import Gate
from loadtests.servers import certificate
from loadtests.studies import command
from loadtests.verdict.thresholds import FAILS, HOLDS, UNKNOWN, condition
from tests.testkit.server import ROOT

LINE = '127.0.0.1 - - [12/Nov/2026:10:00:{:02} +0000] "{} {} HTTP/1.1" {} 5 "-" "agent"\n'
SPEED = 5


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Ten requests in three seconds, the first two within one, and one that failed then."""
    path = tmp_path / "access.log"
    lines = [LINE.format(number // 4, "GET", f"/{number}", 200) for number in range(10)]
    path.write_text("".join([*lines, LINE.format(1, "POST", "/form", 200)]))
    return path


@contextmanager
def serving(
    tls: ssl.SSLContext | None = None,
) -> Iterator[tuple[str, list[tuple[float, str, str]]]]:
    """A server that closes each connection, serves nobody beside an idle one; and what it saw."""
    seen: list[tuple[float, str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append((time.monotonic(), self.path, self.headers["Host"]))
            body = b'{"token": "t-%b"}' % self.rfile.read(int(self.headers["Content-Length"]))
            is_form = self.headers["Content-Type"] == "application/x-www-form-urlencoded"
            self.send_response(200 if is_form else 415)
            self.send_header("Set-Cookie", "session=s1; Path=/")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            seen.append((time.monotonic(), self.path, self.headers["Host"]))
            known = self.headers["Authorization"], self.headers["Cookie"]
            wrong = self.path == "/account/t-ada" and known != ("Bearer t-ada", "session=s1")
            self.send_response(500 if wrong or self.path == "/7" else 200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http{'s' * bool(tls)}://localhost:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()


def test_a_log_that_tells_whole_seconds_is_spread_over_them(log: Path) -> None:
    placed, left_out = timed(log)
    assert [moment for moment, _ in placed] == [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5]
    assert [request.target for _, request in placed] == [f"/{number}" for number in range(10)]
    assert left_out == 1


def test_requests_come_at_their_times(
    log: Path, tmp_path: Path, lab: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "results.jsonl"
    with serving() as (url, seen):
        words = ["replay", str(log), "--url", url, f"--speed={SPEED}", f"--output={output}"]
        before = time.monotonic()
        assert lab(*words) == 0
    # The connection by which the command has seen that it is there sent nothing.
    assert sorted(path for _, path, _ in seen) == [f"/{number}" for number in range(10)]
    assert {host for *_, host in seen} == {url.removeprefix("http://")}
    moments = {request.target: moment / SPEED for moment, request in timed(log)[0]}
    assert [path for moment, path, _ in seen if moment - before < moments[path]] == []
    (sample,) = (one for one in store.load([output]) if one["record"] == "sample")
    assert (sample["due"], sample["requests"], sample["left_out"]) == (10, 9, 1)
    assert sample["errors"] == {"GET /7: status 500 instead of 200": 1}
    told = [(one["link"], one["answered"], one["failed"]) for one in sample["steps"]]
    assert sorted(told) == [(f"GET /{number}", number != 7, number == 7) for number in range(10)]
    assert sum(one["failed"] for one in sample["windows"]) == 1
    said = capsys.readouterr().out
    assert "Of 10 requests 9 were answered" in said
    assert "Left out of 11 lines of the log: 1 " in said
    assert "requests per second p99 went from" not in said
    assert "<svg" in output.with_suffix(".html").read_text(encoding="utf-8")
    assert list(command.by_study(store.load([output]))) == ["replay"]


def test_a_rate_that_rises(tmp_path: Path, lab: Any, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "results.jsonl"
    moments = arrivals(10, 90, 1.5)
    # 75 are due on average, most of them in the second half.
    assert 50 < len(moments) < 100
    assert len([one for one in moments if one < 0.75]) < len(moments) / 2
    assert arrivals(90, 10, 1.5)[0] < arrivals(10, 90, 1.5)[0]
    words = ["load", "--rate=10-90", "--seconds=1.5", "--path=/a", "--path=/b"]
    with serving() as (url, seen):
        before = time.monotonic()
        assert lab(*words, "--url", url, f"--output={output}") == 0
    came = sorted(moment - before for moment, *_ in seen)
    assert [at for at, due in zip(came, moments, strict=True) if at < due] == []
    assert {path for _, path, _ in seen} == {"/a", "/b"}
    (sample,) = (one for one in store.load([output]) if one["record"] == "sample")
    rates = [one["rate"] * moments[-1] / len(sample["windows"]) for one in sample["windows"]]
    assert sum(rates) == pytest.approx(sample["due"]) == pytest.approx(len(moments))
    assert "requests per second p99 went from" in capsys.readouterr().out


CHAIN = """\
{"method": "POST", "target": "/login", "body": "ada", "save": {"token": "\\"token\\": \\"(.*?)\\""}}
{"target": "/account/{token}", "headers": {"Authorization": "Bearer {token}"}}
"""


@pytest.mark.parametrize(
    ("more", "right", "failed"),
    [
        ('{"target": "/{unknown}"}', 5, {}),
        ('{"target": "/7"}', 0, {'GET /7: status 500, such as "ok"': 5}),
        ('{"target": "/", "save": {"x": "(never)"}}', 0, {"GET /: no x in the response": 5}),
    ],
)
def test_a_chain_hands_on_what_responses_say(
    more: str, right: int, failed: dict[str, int], tmp_path: Path
) -> None:
    file = tmp_path / "chain.jsonl"
    file.write_text(CHAIN + more)
    links = chain.read(file)
    with serving() as (url, seen):
        place = ("127.0.0.1", int(url.rpartition(":")[2]))
        moments = [number / 50 for number in range(5)]
        before = time.monotonic()
        found, steps = chain.drive(place, "shop.example", links, moments, 8, None)
    came = sorted(at - before for at, path, _ in seen if path == "/login")
    assert [at for at, due in zip(came, moments, strict=True) if at < due] == []
    assert {host for *_, host in seen} == {"shop.example"}
    assert [path for _, path, _ in seen].count("/account/t-ada") == 5
    assert (found.load.requests, found.load.errors) == (right, failed)
    assert [one["answered"] for one in steps] == [5, 5, right]
    assert [one["failed"] for one in steps] == [0, 0, sum(failed.values())]


def test_the_report_of_a_chain(
    tmp_path: Path, lab: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "chain.jsonl").write_text(CHAIN)
    words = ["load", "--rate=20", "--seconds=1", f"--chain={tmp_path / 'chain.jsonl'}"]
    with serving() as (url, _):
        words += [f"--url={url}", f"--output={tmp_path / 'results.jsonl'}"]
        assert lab(*words) == 0
    said = capsys.readouterr().out
    assert "p99 went from" not in said
    due = len(arrivals(20, 20, 1))
    assert f"Of {due} visits {due} were answered" in said
    assert "| POST /login " in said


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "1: "),
        ("[1]", "1: no object with"),
        ('{"url": "/"}', "keys: target method headers body save"),
        ('{"target": "/", "json": {}}', "1: there is no key 'json'; keys: target method"),
        ('{"target": "/", "body": {"user": "ada"}}', '1: \'body\' is a text, not {"user": "ada"}'),
        ('{"target": "/", "headers": {"A": 1}}', "'headers' is an object whose values are texts"),
        ('{"target": "http://x/"}', "/path"),
        ('{"target": "/", "save": {"x": "y"}}', "no group"),
    ],
)
def test_a_chain_that_cannot_be_understood(line: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "chain.jsonl"
    file.write_text(line)
    with pytest.raises(LabError, match=re.escape(words)):
        chain.read(file)


def test_the_type_of_a_body() -> None:
    assert chain.typed({}, "") == {}
    assert chain.typed({}, "user=ada") == {"Content-Type": "application/x-www-form-urlencoded"}
    assert chain.typed({"A": "b"}, '{"user": 1}') == {"Content-Type": "application/json", "A": "b"}
    assert chain.typed({"content-type": "text/plain"}, "{}") == {"content-type": "text/plain"}


def test_a_load_that_is_too_large() -> None:
    with pytest.raises(LabError, match="a lower rate"):
        arrivals(1e5, 1e6, 1000)


def test_what_cannot_be_replayed(log: Path, tmp_path: Path) -> None:
    without = tmp_path / "requests.jsonl"
    without.write_text('{"target": "/"}\n')
    with pytest.raises(LabError, match="with a time"):
        timed(without)


@pytest.mark.parametrize("url", ["ftp://localhost/", "http:///shop", "localhost:80"])
def test_urls_that_are_refused(
    url: str, log: Path, lab: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["replay", str(log), "--url"], ["load"]):
        with pytest.raises(SystemExit):
            lab(*words, url)
        said = capsys.readouterr().err
        assert f"{url!r} is not written http://HOST:PORT/PATH" in said
        assert ("http:// is missing" in said) == ("//" not in url)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["load", "http://h/a", "--path=/b"], "/a, and --path says /b"),
        (["load", "http://h", "--path=slow"], "--path 'slow': begins with /"),
        (["load", "http://h/a", "--rate=1", "--chain=chain.jsonl"], "'a' is not asked for"),
        (["load", "http://h", "--path=/b", "--rate=1", "--chain=chain.jsonl"], "'/b' is not asked"),
        (["replay", "no.log", "http://h/a"], "'a' is not asked for: no.log has the paths"),
    ],
)
def test_paths_that_are_refused(
    words: list[str], said: str, lab: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lab(*words) == 1
    assert said in capsys.readouterr().err


def test_files_are_written_before_the_outcome_is_printed(
    log: Path, tmp_path: Path, lab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object) -> None:
        raise LabError("whoever reads has gone")

    monkeypatch.setattr("loadtests.replay.command.print", closed, raising=False)
    with serving() as (url, _):
        words = [f"--speed={SPEED}", f"--json={tmp_path / 'x.json'}"]
        words += [f"--output={tmp_path / 'x.jsonl'}"]
        assert lab("replay", str(log), url, *words) == 1
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert f"<h1>Replay: {url}, access.log × {SPEED}</h1>" in page
    assert json.loads((tmp_path / "x.json").read_text())["answered"] == 9


# Other protocols, and what the server uses


SERVE = (
    f"{sys.executable} -m poorhttp serve {ROOT}/loadtests/apps/{{}}.py "
    "--bind {{host}}:{{port}} --access-log off --mode threading --threads 4 --http2 on"
)


@pytest.mark.parametrize(
    ("application", "words", "step"),
    [
        ("events", ["--h2"], ""),
        ("events", ["--events", "--path=/events?0.1"], "further events"),
        ("events", ["--events", "--h2", "--path=/events?0.1"], "further events"),
        ("sockets", ["--websocket", "--connections=4"], "handshake"),
    ],
)
def test_protocols(
    application: str,
    words: list[str],
    step: str,
    tmp_path: Path,
    lab: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("pycurl")
    output = tmp_path / "results.jsonl"
    command = f"--command=mine={SERVE.format(application)}"
    assert lab("load", "--rate=30", "--seconds=1", command, *words, f"--output={output}") == 0
    (sample,) = (one for one in store.load([output]) if one["record"] == "sample")
    assert sample["errors"] == {}
    assert sample["due"] == sample["requests"] == len(arrivals(30, 30, 1))
    steps = {one["link"]: one["answered"] for one in sample.get("steps", [])}
    assert list(steps) == [step] * bool(step)
    assert all(steps.values())
    assert sample["server_cpu"] > 0
    assert sample["pss"] > 2**20
    assert 0 <= sample["machine"]["others"] <= 1
    assert "The server used" in capsys.readouterr().out


def test_as_fast_as_answered(tmp_path: Path, lab: Any, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "results.jsonl"
    words = ["--seconds=0.5", "--connections=1", "--path=/a", "--path=/7"]
    with serving() as (url, seen):
        # As with wrk; where the URL has a path it is asked for.
        assert lab("load", *words, url, f"--output={output}") == 0
        assert {path for _, path, _ in seen} == {"/a", "/7"}
        assert lab("load", *words[:2], f"{url}/x?y", f"--output={tmp_path / 'other.jsonl'}") == 0
        assert {path for _, path, _ in seen} == {"/a", "/7", "/x?y"}
    (sample,) = (one for one in store.load([output]) if one["record"] == "sample")
    assert 2 < sample["requests"] <= len(seen)
    wrong = {"GET /7: status 500", "GET /7: no answer in time", "GET /a: no answer in time"}
    assert sample["errors"].keys() <= wrong
    assert sum(one["rate"] for one in sample["windows"]) > 0
    said = capsys.readouterr().out
    assert f"{url}, GET /a /7, 1 connections" in said
    assert "## Requests as fast as they are answered" in said
    assert "| answered, /s " in said
    assert "| due " not in said
    assert "requests per second" not in said
    assert lab("load", "--websocket", f"--url={url}") == 1
    assert "needs a --rate" in capsys.readouterr().err


def test_https(tmp_path: Path, lab: Any) -> None:
    pytest.importorskip("pycurl")
    for name, text in certificate.certificate().items():
        (tmp_path / name).write_text(text)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    (tmp_path / "chain.jsonl").write_text(CHAIN)
    for words, targets in (
        (["--path=/a", "--path=/7"], {"/a", "/7"}),
        ([f"--chain={tmp_path / 'chain.jsonl'}"], {"/login", "/account/t-ada"}),
    ):
        output = tmp_path / f"{len(words)}.jsonl"
        with serving(context) as (url, seen):
            more = ["--rate=20", "--seconds=1", f"--url={url}", f"--output={output}"]
            assert lab("load", *words, *more) == 0
        assert {path for _, path, _ in seen} == targets
        (sample,) = (one for one in store.load([output]) if one["record"] == "sample")
        assert [*sample["errors"]] == ["GET /7: status 500"] * ("/7" in targets)


def loaded(p99_ms: Sequence[float], **more: Any) -> dict[str, Any]:
    """The sample of a load whose rate rises, with the p99 of each part."""
    times = histogram.encode(histogram.record(one * 1000 for one in p99_ms))
    parts = [
        {"rate": 100.0 * (number + 1), "p50_us": 1000, "p99_us": one * 1000}
        for number, one in enumerate(p99_ms)
    ]
    known = {
        "ramp": True,
        "due": 100,
        "requests": 100,
        "seconds": 10.0,
        "errors": {},
        "max_us": 1e6,
    }
    return {**known, "times": times, "windows": parts, **more}


BUSY = {"machine": {"others": 0.5, "stolen": 0, "mhz": (0, 0)}}


@pytest.mark.parametrize(
    ("text", "more", "outcome"),
    [
        ("p99 > 50 ms", {}, HOLDS),
        ("p99 > 0.2 s", {}, FAILS),
        ("p999 > 50 ms", {"requests": 1000}, HOLDS),
        ("p999 > 50 ms", {}, UNKNOWN),
        ("p99 > 1 s", {"requests": 99}, UNKNOWN),
        ("p99 > 1 s", {"errors": {"GET /: status 404": 2}}, UNKNOWN),
        ("p99 > 50 ms", {"errors": {"GET /: status 404": 2}}, HOLDS),
        ("rate < 20", {}, HOLDS),
        ("failed > 0", {}, FAILS),
        ("failed > 0.5 %", {"errors": {"read": 1}}, HOLDS),
        ("cpu > 10 us", {}, UNKNOWN),
        ("cpu > 10 us", {"server_cpu": 1.0, "pss": 1}, HOLDS),
        ("p99 > 50 ms", BUSY, UNKNOWN),
        ("p99 > 1 s", BUSY, FAILS),
    ],
)
def test_conditions(text: str, more: dict[str, Any], outcome: str) -> None:
    one = condition(text, gate.UNITS)
    assert Gate(loaded([10, 20, 100], **more), [one]).judged == [(one, outcome)]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("p99 < 100 ms", "write 'p99 > 100 ms'"),
        ("rate > 20", "write 'rate < 20'"),
        ("p98 > 1 ms", "such as 'p99 > 50 ms' or 'failed > 0'"),
        ("slower", "such as 'p99 > 50 ms' or 'failed > 0'"),
    ],
)
def test_conditions_that_are_refused(
    text: str, right: str, lab: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        lab("load", "http://127.0.0.1:1", f"--fail-if={text}")
    assert right in capsys.readouterr().err


def test_what_a_gate_says() -> None:
    def said(strict: bool, **more: Any) -> list[str]:
        conditions = [condition("p99 > 100 ms"), condition("failed > 5", gate.UNITS)]
        return Gate(loaded([190], **more), conditions, strict).words()

    passed = "passed: failed > 5 (failed is 2 %: 2 of 100)"
    errors = {"errors": {"read": 2}}
    assert said(False, **errors) == ["FAILED: p99 > 100 ms (p99 is 190 ms)", passed, "exit code 3"]
    unsure = "not to be told: p99 > 100 ms (p99 is 190 ms, but the machine was busy)"
    assert said(False, **errors, **BUSY) == [unsure, passed, "exit code 0; with --strict it is 4"]
    assert said(True, **errors, **BUSY) == [unsure, passed, "exit code 4"]


@pytest.mark.parametrize(
    ("p99", "said"),
    [
        ([10, 20, 100, 40], "is kept up to 200 requests per second, and not at 300"),
        ([100, 100], "is not kept at 100"),
        ([1, 2, 3], "is kept up to 300 requests per second, the highest rate"),
    ],
)
def test_the_highest_rate(p99: list[float], said: str) -> None:
    limit = condition("p99 > 50 ms", gate.UNITS)
    assert said in Gate(loaded(p99), [limit]).highest(limit)
    assert "not to be told" in Gate(loaded(p99, **BUSY), [limit]).highest(limit)


def test_system_calls(tmp_path: Path, lab: Any, capsys: pytest.CaptureFixture[str]) -> None:
    if why := programs.missing("strace"):
        pytest.skip(why)
    output = tmp_path / "results.jsonl"
    server = f"--command=py={sys.executable} -m http.server -b {{host}} {{port}} -d {tmp_path}"
    words = ["--rate=20", "--seconds=0.5", "--system-calls", f"--output={output}", "--path=/"]
    assert lab("load", server, *words) == 0
    (sample,) = (one for one in store.load([output]) if one["record"] == "sample")
    assert sample["calls"]["accept4"] >= sample["calls_requests"] > 0
    assert "system calls of the server, a request" in capsys.readouterr().out


def test_system_calls_that_cannot_be_counted() -> None:
    summary = "syscall              calls\n-------\nsendto    3\nread  12\n-----\ntotal   15\n"
    assert system_calls.parse(summary) == {"read": 12, "sendto": 3}
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    with pytest.raises(ServerFailure, match="No such process"):
        system_calls.counted([ended.pid], lambda: None)


def test_a_gate(tmp_path: Path, lab: Any, capsys: pytest.CaptureFixture[str]) -> None:
    paths = {kind: tmp_path / f"load.{kind}" for kind in ("json", "csv", "junit")}
    words = ["--rate=20", "--seconds=0.5", "--path=/7", "--fail-if=failed > 0"]
    words += ["--fail-if=p50 > 900 s", *(f"--{kind}={path}" for kind, path in paths.items())]
    with serving() as (url, _):
        output = f"--output={tmp_path / 'results.jsonl'}"
        assert lab("load", *words, f"--url={url}", output) == 3
    due = len(arrivals(20, 20, 0.5))
    said = capsys.readouterr().out
    assert f"FAILED: failed > 0 (failed is 100 %: {due} of {due})" in said
    assert "exit code 3\n" in said
    summary = json.loads(paths["json"].read_text())
    # Nothing was answered rightly, so there are no times.
    assert "not to be told: p50 > 900 s (p50 is not known)" in said
    assert f"None of {due} requests was answered rightly; failed: {due} × GET /7: status" in said
    assert "p50" not in summary["values"]
    assert [one["outcome"] for one in summary["conditions"]] == [HOLDS, UNKNOWN]
    assert summary["values"]["failed"] == {"value": 100, "unit": "%"}
    assert "failed,100.0,%" in paths["csv"].read_text()
    suite = ElementTree.parse(paths["junit"]).getroot()
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("2", "1")


def test_a_gate_without_an_answer(tmp_path: Path, lab: Any) -> None:
    path = tmp_path / "load.xml"
    words = ["--rate=20", "--seconds=0.5", "--path=/7", "--fail-if=p99 > 1 s", f"--junit={path}"]
    with serving() as (url, _):
        assert lab("load", *words, url, f"--output={tmp_path / 'x.jsonl'}") == 1
    suite = ElementTree.parse(path).getroot()
    assert (suite.attrib["tests"], suite.attrib["errors"]) == ("1", "1")


@pytest.mark.parametrize("ended", [False, True])
def test_a_process_that_ends_is_not_the_server(ended: bool) -> None:
    """A worker may be replaced just when the server is looked at."""
    sample = loaded([10], server_failed="one of its processes ended", server_ended=ended)
    assert Gate(sample, []).code(strict=False) == int(ended)


MORTAL = """
import http.server, os, sys
from itertools import count

asked = count()

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        if next(asked) == 9:
            os._exit(3)

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.mark.parametrize("words", [["--seconds=3"], ["--seconds=0.5", "--rate=100"]])
def test_a_server_that_ends(
    words: list[str], tmp_path: Path, lab: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mortal.py").write_text(MORTAL)
    command = f"--command={sys.executable} {tmp_path}/mortal.py {{port}}"
    gate = ["--fail-if=p99 > 900 s", f"--junit={tmp_path / 'load.xml'}"]
    assert lab("load", command, *words, *gate, f"--output={tmp_path / 'x.jsonl'}") == 1
    assert "The server was gone in the end: " in capsys.readouterr().out
    assert ElementTree.parse(tmp_path / "load.xml").getroot().attrib["errors"] == "1"


def test_the_outcome_of_each_path() -> None:
    requests = [Request("/often?a"), Request("/often?b")]
    requests += [Request(f"/{number}") for number in range(outcomes.MOST)]
    timeout = KINDS.index("timeout")
    rows = [Outcome(0, 1000, 1, 0, 200), Outcome(0, 9000, 0, 1, timeout)]
    rows += [Outcome(0, 2000, 1, number, 200) for number in range(2, len(requests) - 1)]
    rows += [Outcome(0, 5, 0, len(requests) - 1, 404)]
    errors = {"timeout": 1, "status": 1, "connect": 3}
    load = Load(len(rows) - 1, 1.0, 0, errors=errors, max_us=9000)
    seen = Seen(load, histogram.record([]), len(rows), rows)
    found, steps = outcomes.told(seen, requests, closed=False)
    # What was waited for in vain is among the times, a wrong answer is not.
    assert found.load.requests == outcomes.MOST
    assert found.times.total_count == outcomes.MOST + 1
    told = {"GET /often: no answer in time": 1, "other paths: status 404": 1}
    assert found.load.errors == told
    assert [one["link"] for one in steps][-1] == "other paths"
    assert len(steps) == outcomes.MOST
    often = steps[0]
    assert (often["link"], often["answered"], often["failed"]) == ("GET /often", 1, 1)
    found, _ = outcomes.told(seen, requests, closed=True)
    assert found.load.errors == {**told, "no connection": 3}


def test_what_help_says(lab: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        lab("load", "--help")
    said = " ".join(capsys.readouterr().out.split())
    assert "at once, at most (default 256, without --rate 64;" in said
    assert said.index("the server: http://HOST:PORT") < said.index("the same")


@pytest.mark.parametrize("disturbs", [False, True])
def test_a_busy_machine_is_said_first(disturbs: bool) -> None:
    around = {"others": 0.5 * disturbs, "stolen": 0.0, "mhz": (0, 0)}
    said = disturbance.warning([{"machine": around}, {}])
    assert said.startswith("Other programs used 50 % of the machine") == disturbs
