"""The study `develop`: clients, verdicts, tables, and a small run."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from loadtests import store
from loadtests.arguments import choose
from loadtests.clients.steady.polling import CLIENTS
from loadtests.errors import LabError, ServerFailure
from loadtests.programs import ROOT
from loadtests.reporting import promises as promise
from loadtests.reporting.model import Cell, Table
from loadtests.servers import projects
from loadtests.servers.projects import FIRST, MAIN, SUB
from loadtests.servers.registry import develop
from loadtests.stats.results import Results
from loadtests.studies import command, engine
from loadtests.studies.develop import experiments
from loadtests.studies.develop.experiments import (
    BACKWARDS,
    BOTH,
    HALF_LOADED,
    Asked,
    Author,
    Browsers,
    Save,
    judge,
)
from loadtests.studies.develop.study import STUDY
from tests.testkit.client import HANG


def saved(*pairs: tuple[str, str]) -> list[Save]:
    return [Save(float(number), pair) for number, pair in enumerate(pairs)]


OLD, MIDDLE, NEW = ("0", "0"), ("1", "0"), ("1", "2")
SAVES = saved(OLD, MIDDLE, NEW)


class TestJudgement:
    def test_sound(self) -> None:
        # The second was asked before anybody knew of the new version, and ended after.
        asked = [
            Asked("a", 1, 2, "", NEW),
            Asked("b", 1.5, 3, "", OLD),
            Asked("a", 4, 5, "", NEW),
        ]
        assert judge(SAVES, asked) == []

    def test_backwards(self) -> None:
        asked = [
            Asked("a", 1, 2, "", NEW),
            Asked("b", 2.5, 3, "", MIDDLE),
            Asked("b", 4, 5, "", NEW),
        ]
        assert [fault["kind"] for fault in judge(SAVES, asked)] == [BACKWARDS]

    def test_half_loaded(self) -> None:
        assert judge(SAVES, [Asked("a", 1, 2, "", ("0", "2"))]) == [
            {"kind": HALF_LOADED, "sent": "a", "what": "0 and 2", "began": 1, "ended": 2}
        ]

    def test_faults_of_clients(self) -> None:
        asked = [Asked("a", 1, 2, "reset", ("oh", "")), Asked("a", 2, 3, "", OLD)]
        [fault] = judge(SAVES, asked)
        assert (fault["kind"], fault["what"]) == ("reset", "oh")


class TestProjects:
    @pytest.mark.parametrize("kind", [projects.HELLO, projects.FLASK, projects.DJANGO])
    def test_versions_have_the_same_length(self, kind: projects.Kind) -> None:
        project = projects.EditedProject("", kind.module, kind.callable, kind=kind)
        for file in (kind.main, kind.sub):
            first, later = project.text(file, FIRST), project.text(file, "000017")
            assert first == kind.files[file]
            assert len(first) == len(later)
            assert later.count('"000017"') == 1
            compile(later, file, "exec")

    def test_five_thousand(self) -> None:
        parts = [name for name in projects.LARGE.files if name.startswith("parts")]
        assert len(parts) == 5_000

    def test_what_it_needs(self) -> None:
        kind = replace(projects.HELLO, needs=("json", "no_such_module"))
        with (
            pytest.raises(LabError, match=r"'hello' needs no_such_module: pip install"),
            projects.made(kind),
        ):
            pass

    def test_saves(self) -> None:
        with projects.made(projects.HELLO) as project:
            author = Author(project)
            before = sorted(project.path.rglob("*"))
            what = [author.save(name).versions for name in (MAIN, SUB, BOTH, SUB)]
            assert what == [
                ("000001", FIRST),
                ("000001", "000002"),
                ("000003", "000003"),
                ("000003", "000004"),
            ]
            assert '"000003"' in (project.path / "app.py").read_text(encoding="utf-8")
            assert sorted(project.path.rglob("*")) == before
            times = [save.began for save in author.saves]
            assert times == sorted(times)


#: Looks at the files for each request, so that it answers anew at once; "X" makes it fail.
AT_ONCE = """\
import re, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        read = len(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        main, sub = (
            re.search(r'"([0-9]{6})"', open(name).read())[1]
            for name in ("app.py", "words/greeting.py")
        )
        body = f"main {main} sub {sub} read {read}\\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *arguments):
        pass

server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""
STUB = develop.ReloadingServer(
    "stub",
    "#000000",
    "{python} {folder}/stub.py {port}",
    "pytest",
    files=(("stub.py", AT_ONCE),),
)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[engine.Lab]:
    writing = store.Store(tmp_path / "results.jsonl", "2026-01-01")
    yield engine.Lab(writing, experiments.TINY.seconds, 1, None, None)
    writing.close()


def stored(lab: engine.Lab) -> Results:
    return Results(store.load([lab.store.path]))


def figures(lab: engine.Lab) -> dict[str, float]:
    return {figure["name"]: figure["value"] for figure in stored(lab).figures}


def trial(lab: engine.Lab, experiment: str) -> experiments.Trial:
    return experiments.Trial(
        lab, experiment, 0, STUB, experiments.TINY.amounts, kind=projects.HELLO
    )


class TestSmallRuns:
    """Against a server that looks at the files for each request."""

    def test_all_clients(self, lab: engine.Lab) -> None:
        assert "10 saves, 0 never" in experiments.saves(trial(lab, "saves"))
        found = figures(lab)
        assert found["saves"] == 10
        # It looks at one file after the other, so somebody may have met it in between.
        assert found["failed"] == found.get(f"failed: {HALF_LOADED}", 0)
        assert found["pages"] > 0
        assert found["requests"] > 10

    def test_from_a_save_to_its_answer(self, lab: engine.Lab) -> None:
        assert " ms, worst " in experiments.save_to_answer(trial(lab, "hello"))
        found = figures(lab)
        assert 0 < found[f"seconds, {MAIN}"] < experiments.LIMIT
        assert 0 < found[f"seconds, {SUB}"] < experiments.LIMIT
        assert (found["saves"], found["never answered"]) == (2, 0)
        assert 0 < found["longest request"] < experiments.LIMIT

    def test_memory_and_rest(self, lab: engine.Lab) -> None:
        assert experiments.idle(trial(lab, "idle")).endswith(" 1 processes")
        assert "PSS " in experiments.memory(trial(lab, "memory"))
        found = figures(lab)
        assert 0 <= found["share of a core"] < 1
        assert found["hello: pss at start"] > 0
        assert found["hello: pss after saves"] > 0

    def test_a_version_that_never_comes(
        self, lab: engine.Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Browsers, "first", lambda *_: None)
        with pytest.raises(ServerFailure, match="no version was answered"):
            experiments.save_to_answer(trial(lab, "hello"))
        assert figures(lab)["never answered"] == 2


class TestBrowsers:
    @pytest.fixture
    def stub(self) -> Iterator[tuple[int, Author]]:
        with (
            projects.made(projects.HELLO) as project,
            subprocess.Popen(
                [sys.executable, "-c", AT_ONCE, "0"], cwd=project.path, stdout=subprocess.PIPE
            ) as process,
        ):
            assert process.stdout
            yield int(process.stdout.readline()), Author(project)
            process.kill()

    @pytest.mark.parametrize("kind", CLIENTS)
    def test_each_kind(self, stub: tuple[int, Author], kind: str) -> None:
        port, author = stub
        with Browsers(port, {kind: 2}, None) as browsers:
            first = browsers.first(author.saves[0], HANG)
            later = browsers.first(author.save(SUB), HANG)
            assert first is not None
            assert later is not None
            asked, counts = browsers.end()
        assert [one.fault for one in asked if one.fault] == []
        assert {one.client for one in asked} == {f"{kind} 1", f"{kind} 2"}
        assert {one.versions for one in asked} == {save.versions for save in author.saves}
        assert judge(author.saves, asked) == []
        assert (counts.get("pages", 0) > 0) == (kind == "page")

    def test_nobody_answers(self) -> None:
        # Port 1 of this machine: nobody listens there.
        with Browsers(1, {"once": 1, "kept": 1, "page": 1}, None) as browsers:
            assert browsers.first(Save(0.0, OLD), 0.1) is None
            asked, counts = browsers.end()
        assert {one.fault for one in asked} == {"refused"}
        assert counts["pages lost"] > 0


class TestContestants:
    def test_who_is_for_what(self, lab: engine.Lab) -> None:
        def who(kind: projects.Kind) -> set[str]:
            name = "idle" if kind is projects.LARGE else kind.name
            options = Namespace(names=[name])
            planned = STUDY.plan(lab, experiments.TINY, develop.EVERYONE, options)
            return {step.server.name for step in planned}

        everywhere = who(projects.HELLO) & who(projects.FLASK) & who(projects.DJANGO)
        assert who(projects.HELLO) - everywhere == {"Werkzeug run_simple"}
        assert who(projects.FLASK) - everywhere == {"flask run --debug"}
        assert who(projects.DJANGO) - everywhere == {"runserver"}
        assert who(projects.LARGE) == who(projects.HELLO)

    def test_others_do_not_see_this_repository(self) -> None:
        for one in develop.EVERYONE:
            paths = one.environ(projects.HELLO, "/project")["PYTHONPATH"].split(":")
            hidden = "sitecustomize.py" in dict(one.files)
            assert (str(ROOT) in paths, hidden) == (one.ours, not one.ours)

    def test_rounds(self, lab: engine.Lab) -> None:
        chosen = choose("server", develop.EVERYONE, ["poorhttp dev", "granian"])
        planned = STUDY.plan(lab, experiments.FULL, chosen, Namespace(names=["hello"]))
        assert len(planned) == 3 * 3
        assert [step.what for step in planned[:3]] == [
            f"hello, round 1 of 3, {name}"
            for name in ("poorhttp dev", "poorhttp dev (full)", "granian --reload")
        ]
        assert planned[3].server != planned[0].server
        (first, *_) = STUDY.plan(lab, experiments.FULL, chosen, Namespace(names=["memory"]))
        assert first.what == "memory of hello, round 1 of 3, poorhttp dev"


RUN = {"record": "run", "run": "run", "command": "python -m loadtests develop"}


def records_of(*found: tuple[str, str, str, float]) -> list[store.Record]:
    """Figures of one round: experiment, server, name and value."""
    return [
        RUN,
        *(
            {
                "record": "figure",
                "run": "run",
                "experiment": experiment,
                "server": server,
                "round": 0,
                "name": name,
                "value": value,
            }
            for experiment, server, name, value in found
        ),
    ]


def results_of(*found: tuple[str, str, str, float]) -> Results:
    return Results(records_of(*found))


def rows(results: Results) -> dict[str, list[str]]:
    """The promises by what is promised."""
    table = promise.table(STUDY.name, STUDY.promises, results)
    assert table is not None
    return {str(row[0]): [str(cell) for cell in row] for row in table.rows}


def cells(results: Results, title: str) -> dict[str, dict[str, Cell]]:
    """The table of a section: cells by server and column."""
    [section] = [section for section in STUDY.report(results) if section.title == title]
    [table] = [part for part in section.parts if isinstance(part, Table)]
    names = [column.name for column in table.columns]
    return {str(row[0]): dict(zip(names, row, strict=True)) for row in table.rows}


class TestReport:
    TIMES = (
        ("hello", "poorhttp dev", "seconds, main", 0.02),
        ("hello", "poorhttp dev", "seconds, sub", 0.03),
        ("hello", "poorhttp dev", "seconds, main", 0.2),
        ("hello", "gunicorn --reload", "seconds, main", 0.27),
        ("hello", "granian --reload", "seconds, main", 0.5),
        ("hello", "granian --reload", "failed", 7),
        ("hello", "granian --reload", "failed: refused", 5),
        ("hello", "granian --reload", "requests", 100),
        ("hello", "granian --reload", "longest request", 1),
        ("hello", "gunicorn --reload", "longest request", 1),
        ("hello", "poorhttp dev", "longest request", 1),
    )

    def test_times(self) -> None:
        found = rows(results_of(*self.TIMES))
        median = found["from a save to its first answer, hello: median"]
        assert median[1:5] == ["≤ 60 ms", "30 ms (20 – 200)", "hello", "yes"]
        assert found["hello: worst"][2:5] == ["200 ms (20 – 200)", "hello", "**no**"]
        ahead = found["hello: speed against the fastest of the others"]
        assert ahead[1:5] == [
            "≥ 8 ×",
            "9.0 × (9.0 – 9.0)",
            "hello, to gunicorn --reload",
            "yes",
        ]

    def test_tables(self) -> None:
        results = results_of(*self.TIMES)
        granian = cells(results, "hello")["granian --reload"]
        assert granian == {
            "server": "granian --reload",
            "saves": 1,
            "median": 0.5,
            "worst": 0.5,
            "of ours": pytest.approx(16.7, abs=0.05),
            "requests": 100,
            "failed": 7,
            "refused": 5,
            "otherwise": 2,
            "longest request": 1,
        }
        compared = cells(results, "From a save to the first answer")
        # The fastest first.
        assert list(compared) == ["poorhttp dev", "gunicorn --reload", "granian --reload"]
        granian, ours = compared["granian --reload"], compared["poorhttp dev"]
        assert granian["hello"] == (0.5, 0.5, 0.5, 1)
        assert (granian["failed"], granian["requests"]) == (7, 100)
        assert ours["hello"] == (0.03, 0.02, 0.2, 3)
        assert (ours["failed"], ours["requests"]) == (0, 0)
        assert ours["of ours, geometric mean"] == (1, 1, 1, 1)

    def test_experiments_of_other_studies_that_are_called_the_same(self) -> None:
        other = {**RUN, "run": "other", "command": "python -m loadtests show"}
        figure = {"record": "figure", "experiment": "idle", "server": "poorhttp dev", "round": 0}
        figure |= {"name": "share of a core", "value": 0.9}
        ours = records_of(("idle", "poorhttp dev", "share of a core", 0.004))
        strangers = [
            {**figure, "run": "other"},
            # In one run with ours, as of `compare`.
            {**figure, "run": "run", "study": "show"},
        ]
        records = [*ours, other, *strangers]
        own = Results(records).of_study(STUDY.name, STUDY.experiments)
        assert own.values("idle", "poorhttp dev", "share of a core") == [0.004]
        assert STUDY in command.reported(ours)
        assert STUDY not in command.reported([other, strangers[0]])

    def test_what_is_promised_of_modes(self) -> None:
        results = results_of(
            ("saves", "poorhttp dev (single)", "failed", 0),
            ("saves", "poorhttp dev (gevent)", "failed", 1),
            ("saves", "poorhttp dev (gevent)", "pages lost", 0),
            ("quick", "poorhttp dev", "stale", 0),
            ("idle", "poorhttp dev", "share of a core", 0.004),
            ("memory", "poorhttp dev", "flask: pss at start", 13),
            ("memory", "poorhttp serve", "flask: pss at start", 10),
        )
        found = {row[0]: row[2:5] for row in rows(results).values()}
        assert found == {
            "requests refused, reset, failed or answered by a half-loaded or an older version": [
                "1 (1 – 1)",
                "gevent; worst of 2",
                "**no**",
            ],
            "pages that lost a part": ["0 (0 – 0)", "gevent", "yes"],
            "bursts of saves within a second whose last one was never answered": [
                "0 (0 – 0)",
                "poorhttp dev",
                "yes",
            ],
            "share of a core while nothing changes, 5,000 files": [
                "0.40 % (0.40 – 0.40)",
                "on",
                "yes",
            ],
            "PSS against that of `poorhttp serve`": [
                "1.30 × (1.30 – 1.30)",
                "flask, at start",
                "**no**",
            ],
            "rounds that came to nothing": ["0 (0 – 0)", "all", "yes"],
        }

    def test_a_round_that_came_to_nothing(self) -> None:
        found = results_of(("saves", "poorhttp dev (single)", "failed", 0))
        found.failures.append(
            {"server": "poorhttp dev (single)", "what": "saves, round 1", "reason": "it died"}
        )
        assert rows(found)["rounds that came to nothing"][4] == "**no**"

    def test_every_promise_belongs_to_an_experiment(self) -> None:
        measured = {promise.experiment for promise in STUDY.promises if promise.experiment}
        assert measured == set(experiments.EXPERIMENTS)

    def test_page_and_plot(self, tmp_path: Path) -> None:
        page = tmp_path / "development.md"
        begin, end = "<!-- develop -->", "<!-- end of develop -->"
        page.write_text(f"# Above\n{begin}\n{end}\nBelow\n", encoding="utf-8")
        records = records_of(*self.TIMES)
        options = Namespace(html=None, csv=None, markdown=None, figures=tmp_path, into=page)
        command.tell(options, records)
        text = page.read_text(encoding="utf-8")
        assert text.startswith("# Above\n")
        assert text.endswith("Below\n")
        assert "poorhttp dev answers 30 ms after a save of hello (9 times as fast" in text
        assert "### hello" not in text, "details are in the whole report only"
        (drawn,) = tmp_path.glob("*.svg")
        svg = drawn.read_text(encoding="utf-8")
        assert drawn.stem == "save-to-answer"
        assert all(f">{name}<" in svg for name in ("poorhttp dev", "granian --reload"))
        # Twice the same, and no more.
        command.tell(options, records)
        assert page.read_text(encoding="utf-8") == text
