"""The study `develop`: clients, verdicts, tables, and a small run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadtests import store
from loadtests.clients.steady.polling import CLIENTS
from loadtests.servers import projects
from loadtests.servers.projects import SUB
from loadtests.servers.registry import develop
from loadtests.stats.results import Results
from loadtests.studies import engine
from loadtests.studies.develop import experiments
from loadtests.studies.develop.experiments import (
    BACKWARDS,
    HALF_LOADED,
    Asked,
    Author,
    Browsers,
    Save,
    judge,
)
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
