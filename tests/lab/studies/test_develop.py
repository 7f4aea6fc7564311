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


class TestReport:
    def test_experiments_of_other_studies_that_are_called_the_same(self) -> None:
        other = {**RUN, "run": "other", "command": "python -m loadtests show"}
        figure = {"record": "figure", "experiment": "idle", "server": "poorhttp dev", "round": 0}
        figure |= {"name": "share of a core", "value": 0.9}
        ours: list[store.Record] = [RUN, {**figure, "run": "run", "value": 0.004}]
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

    def test_every_promise_belongs_to_an_experiment(self) -> None:
        measured = {promise.experiment for promise in STUDY.promises if promise.experiment}
        assert measured == set(experiments.EXPERIMENTS)
