"""Advice: the search on made-up servers, files of requests, broken applications, and a run."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from loadtests import store
from loadtests.advise import answer, command, report, workload
from loadtests.advise.answer import P99, THROUGHPUT, Advice, Wish, advise
from loadtests.advise.configuration import Configuration, Probe, of_command, sensible, space
from loadtests.advise.search import LOOK, Found, Pace, pace, search
from loadtests.advise.target import HARMLESS, Target
from loadtests.advise.trial import Bench, Sample, delayed_seconds
from loadtests.advise.workload import Workload, from_locust, recorded
from loadtests.clients import locust
from loadtests.clients.connection import Connection
from loadtests.clients.load import Load
from loadtests.clients.native import replay
from loadtests.clients.native.replay import Request, Seen
from loadtests.errors import LabError
from loadtests.measure import histogram
from loadtests.measure.resources import living
from loadtests.reporting.model import Bars, Table
from loadtests.reporting.provenance import lost
from loadtests.servers.registry import given, named
from loadtests.servers.running import Running
from loadtests.stats.results import Results
from loadtests.studies.bench.scenarios import HELLO
from poorhttp.config import loader
from tests.support.forked_command import run_command
from tests.testkit.client import HANG
from tests.testkit.server import wait_for

MODES = ("single", "forking", "threading", "gevent")


class Machine:
    """A made-up server: a throughput for each configuration, noise, and a clock."""

    COST = 0.7

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        choose, uniform = self.chance.choice, self.chance.uniform
        self.now = 0.0
        self.taken: list[Configuration] = []
        self.cores = choose([2, 2, 4, 8])
        self.connections = choose([16, 32, 64, 100])
        self.cpu = 10 ** uniform(-4, -2.2)
        self.wait = choose([0.0, 0.0, 10 ** uniform(-3, -1.3), 0.02])
        self.contention = uniform(0, 0.06)
        self.crowding = uniform(0, 0.08)
        self.greenlets = choose(["fail", "block", "slow", "even", "fast"])
        self.client = uniform(0, 0.3)
        self.noise = uniform(0.01, 0.06)
        self.alone = uniform(0.95, 1.15)
        self.candidates = space(self.cores, MODES)
        self.grid = len(self.candidates) * (self.COST + 1.0)

    def left(self) -> float:
        """A quarter of what the grid takes."""
        return self.grid / 4 - self.now

    def rate(self, one: Configuration) -> float | None:
        """Without noise."""
        cpu, at_once = self.cpu, min(self.connections, one.at_once)
        if one.mode == "threading":
            cpu *= 1 + self.contention * math.log2(one.threads)
        elif one.mode == "gevent":
            if self.greenlets == "fail":
                return None
            if self.greenlets == "block":
                at_once = min(self.connections, one.workers)
            cpu /= {"slow": 0.7, "fast": 1.1}.get(self.greenlets, 1.0)
        else:
            cpu /= self.alone
        crowd = 1 + self.crowding * max(0, one.workers - self.cores)
        computing = min(one.workers, self.cores - self.client) / cpu / crowd
        waiting = at_once / (cpu + self.wait)
        return float((computing**-6.0 + waiting**-6.0) ** (-1 / 6))

    def measure(self, one: Configuration, seconds: float, number: int | None) -> float | None:
        """With noise: the less, the longer, and now and then something gets in the way."""
        self.taken.append(one)
        rate = self.rate(one)
        self.now += self.COST + (seconds if rate else 0)
        if rate is None:
            return None
        disturbed = 0.6 if self.chance.random() < 0.03 else 1.0
        spread = self.noise / math.sqrt(seconds)
        return rate * disturbed * math.exp(self.chance.gauss(0, spread))

    def search(self) -> Configuration:
        """What is found in a quarter of the grid's time."""
        probe = Probe(self.cpu + self.wait, self.cpu, 20_000_000)
        self.now += self.COST + 0.5
        rates = (probe.throughput(one, self.connections, self.cores) for one in self.candidates)
        found = Found(dict(zip(self.candidates, rates, strict=True)))
        expected = max(found.guesses.values())
        tempo = pace(self.left(), self.COST, probe.service, expected)
        search(self.measure, found, self.left, tempo, 0.03)
        winner = found.winner(0.03)
        assert winner is not None
        return winner


#: How many made-up servers there are; the first ones do not differ from the rest.
seeds = pytest.mark.parametrize("seeds", [40, pytest.param(200, marks=pytest.mark.full)])


@seeds
def test_the_search_is_close_to_the_best_in_a_quarter_of_the_time(seeds: int) -> None:
    close, parts, counts = 0, [], []
    for seed in range(seeds):
        machine = Machine(seed)
        chosen = machine.rate(machine.search())
        best = max(r for one in machine.candidates if (r := machine.rate(one)) is not None)
        assert chosen is not None
        close += chosen >= 0.9 * best
        parts.append(machine.now / machine.grid)
        counts.append(len(machine.taken) / len(machine.candidates))
    assert close >= 0.95 * seeds
    assert max(parts) <= 0.25
    assert sum(counts) / len(counts) < 0.4


def test_limits_of_candidates() -> None:
    limited = space(8, MODES, max_workers=2, max_threads=4)
    assert max(one.workers for one in limited) == 2
    assert max(one.threads for one in limited) == 4


def test_equals_go_to_the_smaller() -> None:
    small, large = Configuration("threading", 1, 8), Configuration("threading", 2, 8)
    found = Found({small: 1.0, large: 1.0}, {small: 98.0, large: 100.0})
    found.rounds = [{small: 98.0, large: 100.0}, {small: 60.0, large: 61.0}]
    assert found.leader() == large
    assert found.winner(0.03) == small
    assert found.winner(0.0) == large
    assert found.ratio(small, large) == pytest.approx((0.98 + 60 / 61) / 2)


def test_noise_makes_no_equal_of_what_is_far_behind() -> None:
    small, large = Configuration("threading", 1, 8), Configuration("threading", 2, 8)
    found = Found({small: 1.0, large: 1.0}, {small: 95.0, large: 100.0})
    found.rounds = [{small: 80.0, large: 100.0}, {small: 110.0, large: 100.0}]
    assert found.alike(small, large)
    assert found.winner(0.03) == small
    found.rounds = [{small: 75.0, large: 100.0}, {small: 110.0, large: 100.0}]
    assert found.alike(small, large)
    assert found.winner(0.03) == large


def test_a_look_is_as_long_as_a_start_or_long_enough() -> None:
    short = pace(15, 0.7, 0.001, 1000)
    assert (short.short, short.long) == (0.7, 0.7)
    # What takes long to start is not measured for as long.
    assert pace(60, 10, 0.001, 1000).short == LOOK
    # With time enough all are as long as they need to be.
    assert pace(60, 0.7, 0.001, 1000) == Pace(LOOK, 3.0, 0.7)


def test_a_round_of_one_is_no_comparison() -> None:
    small, large = Configuration("threading", 1, 8), Configuration("threading", 2, 8)
    found = Found({small: 1.0, large: 1.0}, {small: 95.0, large: 100.0}, rounds=[{large: 60.0}])
    assert found.leader() == small


def ask(file: Path) -> list[Request]:
    """The requests of a file."""
    return list(recorded(file).requests)


def test_access_logs(tmp_path: Path) -> None:
    file = tmp_path / "access.log"
    file.write_text(
        '127.0.0.1 - - [10/Oct/2026:13:55:36 +0000] "GET /a?b=1 HTTP/1.1" 200 23\n'
        "\n"
        '10.0.0.1 - a b [10/Oct/2026:13:55:36 +0000] "HEAD /x HTTP/1.0" 404 - "-" "A \\"b\\""\n'
        '10.0.0.1 - - [10/Oct/2026:13:55:36 +0000] "POST /x HTTP/1.1" 200 1 "-" "-"\n'
        '10.0.0.1 - - [10/Oct/2026:13:55:36 +0000] "GET /x HTTP/1.1" 500 1 "-" "-"\n'
        '10.0.0.1 - - [10/Oct/2026:13:55:36 +0000] "\\x16\\x03" 400 1 "-" "-"\n'
        '10.0.0.1 - - [10/Oct/2026:13:55:36 +0000] "GET http://other/ HTTP/1.1" 400 1 "-" "-"\n',
        encoding="utf-8",
    )
    read = recorded(file)
    assert list(read.requests) == [
        Request("/a?b=1", status=200),
        Request("/x", "HEAD", (("User-Agent", 'A "b"'),), status=404),
    ]
    assert read.first.target == "/a?b=1"
    assert "4 left out" in read.words
    file.write_text(file.read_text(encoding="utf-8") + "what is this\n", encoding="utf-8")
    with pytest.raises(LabError, match=r"access\.log:8: no line of an access log"):
        recorded(file)


def test_lines_of_json(tmp_path: Path) -> None:
    file = tmp_path / "requests.jsonl"
    lines: list[dict[str, object]] = [
        {"target": "/"},
        {
            "method": "POST",
            "target": "/form",
            "headers": {"Content-Type": "text/plain", "Content-Length": "9"},
            "body": "hé",
            "status": 422,
        },
        {"remote_addr": "::1", "method": "POST", "target": "/x", "status": 200},
        {"remote_addr": "::1", "method": None, "target": None, "status": 400},
        {"remote_addr": "::1", "method": "GET", "target": "http://other/", "status": 400},
    ]
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert ask(file) == [
        Request(),
        Request("/form", "POST", (("Content-Type", "text/plain"),), "hé".encode(), 422),
    ]
    assert b"Content-Length: 3\r\n" in ask(file)[1].octets()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"target": "/" ', "not JSON"),
        ("[1]", '"target"'),
        ('{"method": "GET"}', '"target"'),
        ('{"target": "no"}', "not a target"),
        ('{"target": "/ a"}', "not a target"),
        ('{"target": "/", "method": "G T"}', "not a method"),
        ('{"target": "/", "headers": {"A": "b\\r\\nc: d"}}', "not a header field"),
        ('{"target": "/", "headers": {"A": 1}}', "texts"),
        ('{"target": "/", "headers": 1}', "texts"),
        ('{"target": "/", "body": 1}', "not a text"),
        ('{"target": "/", "status": "x"}', "not a number"),
    ],
)
def test_wrong_lines_of_json(tmp_path: Path, line: str, why: str) -> None:
    file = tmp_path / "requests.jsonl"
    file.write_text(f'{{"target": "/"}}\n{line}\n', encoding="utf-8")
    with pytest.raises(LabError, match=rf"requests\.jsonl:2: .*{re.escape(why)}"):
        recorded(file)


def test_har(tmp_path: Path) -> None:
    file = tmp_path / "visit.har"
    asked = {
        "method": "POST",
        "url": "https://example.org/a/b?c=d#e",
        "headers": [{"name": ":path", "value": "/"}, {"name": "Accept", "value": "*/*"}],
        "postData": {"text": "x=1"},
    }
    entries: list[object] = [{"request": asked, "response": {"status": 201}}]
    file.write_text(json.dumps({"log": {"entries": entries}}, indent=1), encoding="utf-8")
    assert ask(file) == [Request("/a/b?c=d", "POST", (("Accept", "*/*"),), b"x=1", 201)]
    entries.append({"request": {"url": "http://h/"}})
    file.write_text(json.dumps({"log": {"entries": entries}}), encoding="utf-8")
    with pytest.raises(LabError, match="entry 2"):
        recorded(file)
    file.write_text('{"log": {}}', encoding="utf-8")
    with pytest.raises(LabError, match="entries"):
        recorded(file)


def test_files_without_requests(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="No such file"):
        recorded(tmp_path / "none")
    file = tmp_path / "file"
    file.write_bytes(b"a\nb\xff\n")
    with pytest.raises(LabError, match=":2: not UTF-8"):
        recorded(file)
    file.write_text("\n")
    with pytest.raises(LabError, match="holds no request"):
        recorded(file)


HELLO_APP = """
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "5")])
    return [b"hello"]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the user is, with an application."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(HELLO_APP, encoding="utf-8")
    return tmp_path


def checked(file: Path) -> str:
    """What `poorhttp check` says to a file."""
    done = run_command("check", "-c", str(file), "--bind=127.0.0.1:0", cwd=file.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "configuration",
    [
        Configuration("single"),
        Configuration("forking", 3, preload=True),
        Configuration("threading", 2, 16),
        Configuration("gevent", 2),
    ],
)
def test_the_file_is_what_was_measured(project: Path, configuration: Configuration) -> None:
    target = Target("app:application", pythonpath=(".", str(project)))
    file = project / "advised.ini"
    file.write_text(target.ini(configuration, ["because"]), encoding="utf-8")
    (settings,) = loader.load({}, {}, str(file))
    measured = target.command(configuration, 1)
    assert (settings.mode, settings.workers) == (configuration.mode, configuration.workers)
    assert settings.value("preload") == configuration.preload
    if configuration.mode == "threading":
        assert settings.threads == configuration.threads
    assert settings.target == "app:application"
    assert settings.pythonpath == (".", str(project))
    assert f"--mode={settings.mode}" in measured
    assert f"--workers={settings.workers}" in measured
    assert set(HARMLESS) < set(measured)
    if configuration.mode != "gevent":
        assert "app:application" in checked(file)


def test_the_user_s_own_file_is_kept(project: Path) -> None:
    own = project / "own.ini"
    own.write_text(
        "# mine\n[http]\ntarget = app:application\ntype = forking\nworkers =\n    7\n"
        "keepalive_timeout = 5\n; this stays\npreload = on\n[host:example.org]\ntarget = app.py\n",
        encoding="utf-8",
    )
    target = Target(file=own)
    target.check()
    text = target.ini(Configuration("threading", 2, 4))
    (project / "new.ini").write_text(text, encoding="utf-8")
    assert text == (
        "# mine\n[http]\nmode = threading\nworkers = 2\nthreads = 4\ntarget = app:application\n"
        "keepalive_timeout = 5\n; this stays\n[host:example.org]\ntarget = app.py\n"
    )
    assert "threading" in checked(project / "new.ini")


def test_targets_that_cannot_be(project: Path) -> None:
    with pytest.raises(LabError, match="there is no target"):
        Target().check()
    with pytest.raises(LabError, match="no HTTP"):
        Target("tcp:app:handler").check()
    with pytest.raises(LabError, match="cannot be read"):
        Target(file=project / "none.ini").check()
    several = project / "several.ini"
    several.write_text(
        "[service:a]\ntarget = app.py\nbind = unix:a\n[service:b]\ntarget = app.py\n"
    )
    with pytest.raises(LabError, match="several services"):
        Target(file=several).check()


@pytest.fixture
def bench(project: Path) -> Iterator[Bench]:
    """Ready to measure."""
    with contextlib.closing(store.Store(project / "results.jsonl", "test")) as keeping:
        yield Bench(Target("app.py"), workload.from_paths(["/"]), keeping)


SINGLE = Configuration("single")


@pytest.fixture
def nothing_left(project: Path) -> Iterator[None]:
    """Fails if something that was started in the project's folder is left running."""

    def servers() -> set[int]:
        found = set()
        for one in living():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{one.process}/cwd").readlink() == project:
                    found.add(one.process)
        return found - {os.getpid()}

    yield
    wait_for(lambda: not servers(), "the end of all processes that were started")


def broken(project: Path, body: str) -> None:
    """Makes the application one that is not right."""
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    text = HELLO_APP.replace("    start_response", f"{indented}\n    start_response", 1)
    (project / "app.py").write_text(f"import os, time\ncount = 0\n{text}", encoding="utf-8")


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import nothing_of_this_name\n", "nothing_of_this_name"),
        (HELLO_APP.replace("200 OK", "404 No"), "error answers"),
    ],
    ids=["import", "404"],
)
def test_an_application_that_does_not_work(
    project: Path, bench: Bench, source: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is asked for so long, and then for ten times as long.
    monkeypatch.setattr(answer, "PROBE_SECONDS", 0.05)
    (project / "app.py").write_text(source, encoding="utf-8")
    with pytest.raises(LabError, match=f"cannot be measured.*{why}"):
        advise(bench, space(2, ["single"]), Wish([4], 2), 5)


@pytest.mark.usefixtures("nothing_left")
def test_one_that_fails_in_some_modes_only(project: Path, bench: Bench) -> None:
    broken(
        project,
        "import threading\n"
        "if environ['wsgi.multithread'] and threading.active_count() > 1: os._exit(7)",
    )
    candidates = [SINGLE, Configuration("threading", 1, 4)]
    advice = advise(bench, candidates, Wish([4], 2), 4)
    assert {one.configuration for one in advice.answers.values()} == {SINGLE}
    assert any("threading 1 × 4" in remark for remark in advice.remarks)
    failures = [r for r in bench.store.records if r["record"] == "failure"]
    assert "threading 1 × 4" in {r["server"] for r in failures}
    (told,) = lost(Results(bench.store.records))
    (table,) = told.parts
    assert isinstance(table, Table)
    assert table.rows[0][0] == "threading 1 × 4"
    assert "search" in str(table.rows[0][3])


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("body", "failure", "rates", "seconds"),
    [
        (
            "if environ['PATH_INFO'] == '/b': return (start_response('404 No', []), [])[1]",
            "; GET /b is answered 404$",
            (0, math.inf),
            0.3,
        ),
        # It ends under load.
        ("if count > 40: os._exit(7)", "ended under load|connections cut", (0, math.inf), 2.0),
        ("if count > 1: time.sleep(600)", "answered nothing", (0, 0), 0.3),
        # As on a busy machine: a trial in which nothing is answered is repeated for longer.
        ("if count > 1: time.sleep(0.5)", "^$", (1e-9, 2), 0.2),
    ],
    ids=["404", "dies", "hangs", "late"],
)
def test_one_that_fails_under_load(
    project: Path,
    bench: Bench,
    body: str,
    failure: str,
    rates: tuple[float, float],
    seconds: float,
) -> None:
    broken(project, f"global count\ncount += 1\n{body}")
    bench.workload = workload.from_paths(["/a", "/b"])
    sample = bench.take(SINGLE, seconds, 1 if failure == "^$" else 4, "search")
    assert re.search(failure, sample.failure), sample.failure
    assert rates[0] <= sample.rate <= rates[1]
    assert sample.rate == 0 or sample.wrong > 0.01 or not sample.failure


def sample(one: Configuration, rate: float, pss: int) -> Sample:
    """As if it had been measured."""
    return Sample(one, "search", None, 64, 0, 1.0, int(rate), rate, pss=pss)


def test_waiting_for_cores_is_read_from_the_kernel() -> None:
    core = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, [{core}])\nwhile True: pass"
    both = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    try:
        # Of two on one core at least one waits at any time.
        wait_for(lambda: delayed_seconds([one.pid for one in both]) > 0.1, "that one waits")
    finally:
        for one in both:
            one.kill()
            one.wait(HANG)
    assert delayed_seconds([2**22 + 1]) == 0


@pytest.mark.usefixtures("nothing_left")
def test_the_command(project: Path, lab: Any, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["app.py", "--budget=2", "--modes=single,threading", "--max-workers=1"]
    words += ["--max-threads=2", "--connections=4", "--output=out.jsonl", "--page=out.html"]
    assert lab("advise", *words) == 0
    said = capsys.readouterr().out
    assert "[http]" in said
    assert "app.py" in checked(project / "poorhttp.ini")
    file = project / "pasted.ini"
    file.write_text(said[said.index("[http]") :].split("\n\n")[0], encoding="utf-8")
    assert "app.py" in checked(file)
    records = store.load([project / "out.jsonl"])
    assert {"run", "sample", "note"} <= {record["record"] for record in records}
    assert "<table>" in (project / "out.html").read_text(encoding="utf-8")


SERVE = "{python} -m poorhttp serve app.py --bind {host}:{port} --access-log off --mode threading"


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.full
def test_a_command_with_numbers_to_be_found(
    project: Path, lab: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    given = f"--command=mine={SERVE} --workers {{workers}} --threads {{threads}}"
    words = ["--budget=2", "--max-workers=1", "--max-threads=2", "--connections=4"]
    assert lab("advise", given, *words, "--write=run.sh", "--output=out.jsonl") == 0
    said = capsys.readouterr().out
    assert re.search(r"If unsure, take this: mine 1 × [12]\n", said)
    shown = SERVE.format(python=sys.executable, host="127.0.0.1", port=8000)
    line = re.search(rf"^{re.escape(shown)} --workers 1 --threads [12]$", said, re.MULTILINE)
    assert line
    assert (project / "run.sh").read_text(encoding="utf-8").endswith(f"{line[0]}\n")
    samples = [one for one in store.load([project / "out.jsonl"]) if one["record"] == "sample"]
    assert {one["server"] for one in samples} == {"mine 1 × 1", "mine 1 × 2"}
    assert all(one["failure"] == "" for one in samples)


@pytest.mark.usefixtures("nothing_left")
def test_a_server_that_runs(project: Path, lab: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with Running(named(["poorhttp threading 8"])[0], HELLO) as there:
        words = ["--budget=2", "--connections=4", f"--output={project / 'out.jsonl'}"]
        assert lab("advise", f"--url=mine=http://127.0.0.1:{there.port}/", *words) == 0
        assert there.processes()
    said = " ".join(capsys.readouterr().out.split())
    assert "mine: nothing to choose from" in said
    assert "What limits it" in said
    assert list(project.glob("*.ini")) == []


@pytest.mark.parametrize(
    ("told", "names", "at_once"),
    [
        ((), ["x"], math.inf),
        (("workers",), ["x 1", "x 2"], math.inf),
        (("threads",), ["x 1", "x 2"], 1),
        (("workers", "threads"), ["x 1 × 1", "x 1 × 2", "x 2 × 1", "x 2 × 2"], 1),
    ],
)
def test_candidates_of_a_command(told: tuple[str, ...], names: list[str], at_once: float) -> None:
    made = of_command("x", told, 2, 2, 2)
    assert [one.name for one in made] == names
    assert made[0].at_once == at_once
    assert all(tuple(one.values()) == told for one in made)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["app.py", "--requests", "none.log"], "No such file"),
        (["app.py", "--command", "sh x"], "TARGET and --config are for poorhttp"),
        (["--command", "sh {module}"], "advise measures your application"),
        (["app.py", "--like", "none.log"], "No such file"),
        (["app.py", "--write", "app.py"], "app.py already exists"),
        (["app.py", "--target", "x"], "begins with /"),
        (["app.py", "--locustfile", "none.py"], "no such file"),
        ([], "there is no target"),
    ],
)
def test_what_the_command_refuses(project: Path, arguments: list[str], why: str) -> None:
    parser = argparse.ArgumentParser()
    command.add(parser.add_subparsers())
    options = parser.parse_args(["advise", *arguments, "--tiny", f"--output={project / 'out'}"])
    with pytest.raises(LabError, match=why):
        command.run(options, "advise")


VISITS = """\
from locust import FastHttpUser, task
class Visitor(FastHttpUser):
    @task
    def visit(self):
        self.client.get('/x')
"""


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.full
def test_a_locust_file_of_the_user_s(project: Path, bench: Bench) -> None:
    if reason := locust.missing():
        pytest.skip(reason)
    file = project / "visits.py"
    file.write_text(VISITS, encoding="utf-8")
    bench.workload = from_locust(file)
    sample = bench.take(SINGLE, 0.5, 2, "search")
    assert sample.failure == ""
    assert sample.rate > 10


def test_the_client_counts_what_there_is() -> None:
    server = named(["poorhttp threading 8"])[0]
    with Running(server, HELLO) as running:
        asked = [Request("/x"), Request("/y", "HEAD"), Request("/z", "POST", body=b"abc")]
        closed = replay.drive(running.port, 0.3, 4, asked, warm=0.1)
        assert closed.load.errors == {}
        assert closed.answered > closed.load.requests > 0
        assert closed.times.total_count == closed.load.requests
        slow = replay.drive(running.port, 1.0, 4, asked, rate=200)
        # So many fall due in the second, answered or not.
        due = slow.load.requests + sum(slow.load.errors.values())
        assert due == pytest.approx(200, rel=0.35)
        assert slow.times.total_count == slow.load.requests
        with Connection(running.port) as connection:
            assert connection.ask(Request("/x").octets())[0].status == 200
    missing = replay.drive(running.port, 0.1, 2, [Request()])
    assert missing.load.requests == 0
    assert missing.load.errors["connect"] > 0


@pytest.mark.usefixtures("nothing_left", "project")
def test_workers_that_serve_one_connection_at_a_time_answer_all() -> None:
    """Such a worker waits for the request of each connection that it has accepted."""
    sync = given.command("{python} -m gunicorn -w 2 -b {host}:{port} app:application")
    with Running(replace(sync, target="/"), HELLO) as running:

        def unanswered() -> int:
            seen = replay.drive(running.port, 1.0, 64, [Request()], rate=40)
            return sum(seen.load.errors.values())

        # On a busy machine not at once.
        wait_for(lambda: not unanswered(), "a run in which all requests are answered")


def test_times_count_from_when_a_request_was_due(project: Path, bench: Bench) -> None:
    broken(project, "time.sleep(0.02)")
    sample = bench.take(SINGLE, 1.0, 64, "p99", rate=200)
    crowded = bench.take(SINGLE, 1.0, 64, "p99", rate=65)
    assert crowded.p50_us > 20_000
    assert crowded.p99_us > 60_000
    # It does 50 a second: those that are due at the end wait for all that were due before.
    assert sample.p99_us > 500_000
    answered, asked = sample.requests, int(sample.failure.split()[-2])
    assert sample.failure == f"{asked - answered} unanswered of {asked} requests"


def advised(rates: dict[Configuration, float], **wish: Any) -> Advice:
    """As if these had been measured: requests/s, with 2 ms of computing on two cores."""
    asked = Wish([64], 2, **wish)
    advice = Advice(asked, Probe(0.02, 0.001, 2**24), rate=asked.rate or 50)
    found = Found(dict(rates), dict(rates), rounds=[dict(rates) for _ in range(3)])
    late = Found(dict(rates), dict.fromkeys(rates, 100.0))
    advice.found = {THROUGHPUT: found, P99: late}
    advice.best = max(rates.values())
    advice.samples = [
        replace(sample(one, rate, 2**24 * one.workers), stage=stage, asked=at, cpu_us=2000)
        for one, rate in rates.items()
        for stage, at in (("final", 0), ("p99 final", 50))
    ]
    winner = found.winner(0.03)
    assert winner is not None
    advice.answers = {THROUGHPUT: answer.Answer(winner, "why")}
    return advice


SMALL, LARGE = Configuration("threading", 1, 64), Configuration("threading", 2, 64)


def test_the_recommendation_is_the_smallest_that_is_good_enough() -> None:
    assert report.recommended(advised({SMALL: 920, LARGE: 1000})) == SMALL
    advice = advised({SMALL: 500, LARGE: 1000})
    assert report.recommended(advice) == LARGE
    # Of half the throughput there is enough, if it is a rate that is asked for.
    assert report.recommended(advised({SMALL: 500, LARGE: 1000}, rate=300)) == SMALL
    # The best p99 counts, too.
    advice = advised({SMALL: 950, LARGE: 1000})
    advice.found[P99] = Found({}, {SMALL: 10.0, LARGE: 100.0}, rounds=[{SMALL: 10, LARGE: 100}] * 3)
    assert report.recommended(advice) == LARGE
    # One that fails is never it.
    advice = advised({SMALL: 950, LARGE: 1000})
    advice.found[THROUGHPUT].failed = [SMALL]
    assert report.recommended(advice) == LARGE


def test_noise_does_not_rank() -> None:
    noisy = [{SMALL: 100.0, LARGE: 130.0}, {SMALL: 120.0, LARGE: 90.0}, {SMALL: 90.0, LARGE: 95.0}]
    found = Found({SMALL: 1, LARGE: 1}, {SMALL: 100, LARGE: 100}, rounds=noisy)
    assert found.alike(SMALL, LARGE)
    found.rounds = [{SMALL: 100.0, LARGE: 110 + n} for n in range(3)]
    assert not found.alike(SMALL, LARGE)
    # A single short look tells apart only what is far apart.
    assert Found({}, {SMALL: 100, LARGE: 120}).alike(SMALL, LARGE)
    assert not Found({}, {SMALL: 100, LARGE: 200}).alike(SMALL, LARGE)
    advice = advised({SMALL: 920, LARGE: 1000})
    advice.found[THROUGHPUT].rounds = noisy
    text = report.terminal(advice, Target("app.py"))
    assert "≈" in text
    assert "does not tell" in text


def test_no_more_computing_workers_than_cores() -> None:
    candidates = space(2, MODES)
    assert max(one.workers for one in candidates) == 4
    assert max(one.workers for one in sensible(candidates, 2, 1.0)) == 2
    more = [one for one in sensible(candidates, 2, 0.1) if one.workers > 2]
    assert {one.name for one in more} == {"forking 3", "forking 4"}
    # Of four that compute for six tenths of the time more than two compute at once.
    most = [one for one in sensible(candidates, 2, 0.6) if one.workers > 2]
    assert {one.name for one in most} == {"forking 3"}
    # Of a command, what waits may be more; its threads compute as workers do.
    assert len(sensible(of_command("x", ("workers",), 2, 0, 0), 2, 0.0)) == 8
    told = sensible(of_command("x", ("workers", "threads"), 2, 0, 2), 2, 0.3)
    assert [one.name for one in told if one.workers > 2] == ["x 3 × 1", "x 3 × 2", "x 4 × 1"]


@pytest.mark.parametrize(
    ("service", "cpu", "kind"),
    [
        (0.0001, 0.00005, "it computes"),
        (0.0004, 0.0001, "it computes"),
        (0.02, 0.0001, "it waits"),
        (0.02, 0.01, "it computes and waits"),
        (0.02, 0.019, "it computes"),
    ],
)
def test_what_an_application_does(service: float, cpu: float, kind: str) -> None:
    assert Probe(service, cpu, 1).kind == kind


@pytest.mark.parametrize(
    ("probe", "seen", "wish", "word", "says"),
    [
        (Probe(0.002, 0.002, 1), {"rate": 950, "cpu_us": 2000}, {}, "computing", "1.9 of 2 cores"),
        (Probe(0.002, 0.002, 1), {"rate": 480, "cpu_us": 2000}, {}, "the lock", "more workers"),
        (
            Probe(0.002, 0.001, 1),
            {"rate": 200, "cpu_us": 1000, "delayed_us": 9000},
            {},
            "computing",
            "0.2 of 2",
        ),
        (Probe(0.02, 0.0002, 1), {"rate": 3100, "cpu_us": 200}, {}, "waiting", "More clients"),
        (Probe(0.02, 0.0002, 1), {"rate": 500, "cpu_us": 200}, {}, "waiting", "gets slower"),
        (
            Probe(0.02, 0.0002, 1),
            {"rate": 2900, "cpu_us": 200, "delayed_us": 900},
            {},
            "waiting",
            "More clients",
        ),
        (
            Probe(0.02, 0.0002, 1),
            {"rate": 500, "client_busy": 1.0},
            {},
            "the client",
            "can do more",
        ),
        (Probe(0.02, 0.0002, 1), {"rate": 500}, {"max_memory": 2**24}, "memory", "allowed"),
    ],
)
def test_what_limits(
    probe: Probe, seen: dict[str, float], wish: dict[str, int], word: str, says: str
) -> None:
    advice = advised({SMALL: 500}, **wish)
    advice.probe = probe
    (one, *_) = advice.samples
    advice.samples = [replace(one, **cast(Any, seen))]
    if wish:
        large = replace(one, configuration=LARGE, rate=1000, pss=2**30)
        advice.samples = [*advice.samples, large]
    assert report.limit(advice, SMALL)[0] == word
    assert says in report.limit(advice, SMALL)[1]
    assert report.step(advice, SMALL)


SYNC = [Configuration("sync", count, told=("workers",)) for count in (1, 2, 4, 8)]


@pytest.mark.parametrize(
    ("rates", "word", "says"),
    [
        ([32, 64, 120, 150], "workers", "No more were allowed: --max-workers 16 tries more."),
        ([32, 64, 120], "workers", "More workers do more."),
        ([0, 0, 0, 230], "workers", "all 8 wait most of the time"),
        ([32, 36, 35, 36], "waiting", "gets slower"),
    ],
)
def test_workers_of_what_waits_are_the_limit_on_a_busy_machine_too(
    rates: list[int], word: str, says: str
) -> None:
    """What others use of the cores is no computing of the application."""
    measured = {one: float(rate) for one, rate in zip(SYNC, rates, strict=False) if rate}
    advice = advised(measured)
    advice.found[THROUGHPUT].guesses = dict.fromkeys(SYNC, 1.0)
    advice.probe = Probe(0.031, 0.001, 2**24)
    advice.samples = [replace(one, others_busy=0.9, cpu_us=1000) for one in advice.samples]
    chosen = report.recommended(advice)
    found, sentence = report.limit(advice, chosen)
    assert (found, says in sentence) == (word, True), sentence
    told = " ".join(report.sentences(advice, chosen))
    assert "cores are the limit" not in told
    assert ("2.00 × the requests/s (expected)" in told) == (word == "workers")


def test_threads_of_what_waits_are_the_limit_though_it_waits_for_cores() -> None:
    one = Configuration("gthread", 4, 4, told=("workers", "threads"))
    advice = advised({one: 260.0})
    advice.probe = Probe(0.031, 0.002, 2**24)
    advice.samples = [replace(s, delayed_us=20_000, others_busy=0.9) for s in advice.samples]
    says = "all 16 wait most of the time. No more were allowed: --max-threads 8 tries more."
    assert report.limit(advice, one) == ("threads", f"threads: {says}")
    # Where it takes longer for another reason, more of them may not help.
    advice.samples = [replace(s, delayed_us=0, rate=130.0) for s in advice.samples]
    assert "gets slower" in report.limit(advice, one)[1]
    assert "try whether more threads" in report.limit(advice, one)[1]


def test_all_workers_that_wait_are_tried(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server whose workers serve one request in 30 ms each, on a machine of two cores."""

    def measured(self: Bench, begun: Sample, seconds: float, rate: float) -> Sample:
        able = begun.configuration.workers / 0.03
        took: dict[str, Any] = {"least_us": 30000, "mean_us": 30000, "p99_us": 31000, "cpu_us": 500}
        return replace(begun, seconds=seconds, requests=1000, rate=rate or able, pss=2**20, **took)

    monkeypatch.setattr(Bench, "_measured", measured)
    candidates = of_command("sync", ("workers",), 2, 0, 0)
    advice = advise(bench, candidates, Wish([64], 2), 60)
    assert report.recommended(advice).workers == 16
    assert "--max-workers 32" in report.limit(advice, report.recommended(advice))[1]


def test_what_is_used_is_no_more_than_there_is() -> None:
    advice = advised({SMALL: 500})
    advice.samples = [replace(one, others_busy=0.9) for one in advice.samples]
    advice.probe = Probe(0.002, 0.002, 1)
    says = "1.0 of 2 cores work for the application, 1.0 for something else"
    assert says in report.limit(advice, SMALL)[1]


class Scarce(Workload):
    """Sends three requests of which two are not answered."""

    def drive(self, port: int, warm: float, seconds: float, connections: int, rate: float) -> Seen:
        return Seen(Load(1, seconds, 0, errors={"timeout": 2}), histogram.record([1]), 1)


def test_few_requests_do_not_make_a_failure(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.workload = Scarce([Request()], "")
    seen = bench.take(SINGLE, 1.0, 4, "p99 search", rate=3)
    assert (seen.failure, round(seen.wrong, 2)) == ("", 0.67)
    # The rate is that of the table.
    assert "3/s" in capsys.readouterr().err


def test_a_rough_p99_is_marked() -> None:
    advice = advised({SMALL: 920, LARGE: 1000})
    advice.samples = [replace(one, p99_us=5000) for one in advice.samples]
    assert "~5.0" in report.terminal(advice, Target("app.py"))
    advice.samples = [*advice.samples, *advice.samples]
    assert "~" not in report.terminal(advice, Target("app.py"))


def test_a_failure_at_the_rate_is_no_failure_under_full_load() -> None:
    one = sample(SMALL, 100, 2**24)
    seen = [one, replace(one, stage="p99 search", asked=70, failure="70 unanswered of 70 requests")]
    (told,) = answer._remarks(seen, rough=False)
    assert told == "Failed, at the rate of p99: threading 1 × 64."


def test_nothing_is_overwritten(project: Path) -> None:
    assert report.write("one", None) == "poorhttp.ini"
    assert report.write("two", None) == "poorhttp.2.ini"
    assert report.write("three", None) == "poorhttp.3.ini"
    assert (project / "poorhttp.ini").read_text(encoding="utf-8") == "one"
    with pytest.raises(LabError, match="not overwritten"):
        report.write("four", project / "poorhttp.ini")
    with pytest.raises(LabError, match="No such file"):
        report.write("five", project / "none" / "poorhttp.ini")


def test_like_a_log(tmp_path: Path) -> None:
    file = tmp_path / "access.log"
    lines = [
        f'1.2.3.4 - - [10/Oct/2026:13:{n // 60:02d}:{n % 60:02d} +0000] "GET /{n} HTTP/1.1" 200 1'
        for n in range(180)
    ]
    busy = ['1.2.3.4 - - [10/Oct/2026:13:01:07 +0000] "POST /x HTTP/1.1" 200 1'] * 240
    file.write_text("\n".join(lines[:67] + busy + lines[67:]), encoding="utf-8")
    asked = recorded(file, at_its_rate=True)
    # The second of three minutes has 60 and 240; bodies are not in a log, but count.
    assert asked.rate == 5.0
    assert len(asked.requests) == 180
    assert "240 left out), 5.0/s in its busiest minute, 2.3 on average" in asked.words
    ours = {"time": "2026-10-10T13:00:00Z", "method": "GET", "target": "/", "status": 200}
    file.write_text("\n".join([json.dumps({**ours, "remote_addr": "::1"})] * 20), encoding="utf-8")
    assert recorded(file, at_its_rate=True).rate == 20.0
    file.write_text('{"target": "/"}', encoding="utf-8")
    with pytest.raises(LabError, match="no times"):
        recorded(file, at_its_rate=True)


def test_the_terminal_fits_a_screen() -> None:
    rates = {one: 1000.0 - number for number, one in enumerate(space(2, MODES))}
    advice = advised(rates)
    text = report.terminal(advice, Target("app.py"), "poorhttp.ini")
    lines = text.splitlines()
    assert lines[0].startswith("If unsure, take this: ")
    assert len(lines) <= 30
    assert all(len(line) <= 80 for line in lines)
    assert text.count("[http]") == 1
    assert "poorhttp serve --config poorhttp.ini" in text
    (told, why, _) = report.sections(Results([]), advice, "GET /")
    assert any("What limits it" in sentence for sentence in why.text)
    picture, _ = told.parts
    assert isinstance(picture, Bars)
    assert picture.bars[0].values[0] is not None
    assert sum(bar.strong for bar in picture.bars) == 1
