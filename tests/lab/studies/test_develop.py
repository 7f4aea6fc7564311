"""The study `develop`: clients, verdicts, tables, and a small run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadtests.clients.steady.polling import CLIENTS
from loadtests.servers import projects
from loadtests.servers.projects import SUB
from loadtests.servers.registry import develop
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
from tests.lab.studies.small_run import lab, stored
from tests.testkit.client import HANG

OLD, MIDDLE, NEW = ("0", "0"), ("1", "0"), ("1", "2")
SAVES = [Save(float(number), pair) for number, pair in enumerate((OLD, MIDDLE, NEW))]


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [
        # The second was asked before anybody knew of the new version, and ended after.
        ([("a", 1, 2, "", NEW), ("b", 1.5, 3, "", OLD), ("a", 4, 5, "", NEW)], []),
        ([("a", 1, 2, "", NEW), ("b", 2.5, 3, "", MIDDLE), ("b", 4, 5, "", NEW)], [BACKWARDS]),
    ],
)
def test_older_versions(asked: list[tuple[Any, ...]], kinds: list[str]) -> None:
    assert [one["kind"] for one in judge(SAVES, [Asked(*one) for one in asked])] == kinds


def test_half_loaded() -> None:
    assert judge(SAVES, [Asked("a", 1, 2, "", ("0", "2"))]) == [
        {"kind": HALF_LOADED, "sent": "a", "what": "0 and 2", "began": 1, "ended": 2}
    ]


def test_faults_of_clients() -> None:
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


def test_all_clients(tmp_path: Path) -> None:
    """Against a server that looks at the files for each request."""
    scale = experiments.TINY
    with lab(tmp_path, scale.seconds, server_core=None, client_core=None) as small:
        trial = experiments.Trial(small, "saves", 0, STUB, scale.amounts, kind=projects.HELLO)
        assert "10 saves, 0 never" in experiments.saves(trial)
    found = {figure["name"]: figure["value"] for figure in stored(small).figures}
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
