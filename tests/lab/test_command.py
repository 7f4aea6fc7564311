"""A run of a study that is interrupted, resumed, or has no room for its results."""

from __future__ import annotations

import json
import os
import resource
import secrets
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadtests import store
from tests.testkit.client import HANG
from tests.testkit.server import ROOT, wait_for

LAB = (sys.executable, "-m", "loadtests")
STUDY = ("serial", "--tiny", "--servers", "poorhttp single")
ROOM = 1 << 16


def records(path: Path) -> list[dict[str, Any]]:
    """Those that are whole."""
    return store.load([path]) if path.exists() else []


def done(path: Path) -> Counter[str]:
    """How often each step was taken."""
    return Counter(record["what"] for record in records(path) if record["record"] == "done")


def marked(mark: str) -> list[str]:
    """The commands of processes whose environment has a mark."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


def test_interrupted_and_resumed(tmp_path: Path, lab: Callable[..., int]) -> None:
    path, mark = tmp_path / "results.jsonl", secrets.token_hex()
    # Enough steps that some are left when the first is over.
    many = ("serial", "--tiny", "--servers", "poorhttp single,poorhttp threading")
    command = [*LAB, *many, "--output", str(path)]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "MARK": mark},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as started:
        wait_for(lambda: done(path), "the first step")
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=HANG)
    assert started.returncode == 130
    assert "interrupted; what was measured is kept" in said
    assert marked(mark) == []
    before = done(path)
    # Half a line is what a run leaves that had no time even for that.
    with path.open("a", encoding="utf-8") as file:
        file.write('{"record": "sam')
    assert lab(many[0], *many[2:], "--resume", str(path)) == 0
    whole = done(path)
    assert before < whole, "nothing was left to do"
    assert set(whole.values()) == {1}
    runs = [record for record in records(path) if record["record"] == "run"]
    # The scale is that of the run, whatever would be usual.
    assert [run["scale"] for run in runs] == ["tiny", "tiny"]
    assert len({run["run"] for run in runs}) == 1
    assert path.with_suffix(".html").exists()


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], lab: Callable[..., int]) -> Callable[..., str]:
    """What the lab says to arguments that it refuses."""

    def said(*arguments: str) -> str:
        assert lab(*arguments) == 1
        return capsys.readouterr().err

    return said


def test_what_cannot_be_resumed(tmp_path: Path, refused: Callable[..., str]) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text('{"record": "note", "run": "1"}\n')
    assert f"{path} has no run of a study" in refused(*STUDY, "--resume", str(path))


def test_an_unknown_study(refused: Callable[..., str]) -> None:
    assert "no study is called 'serail'" in refused("compare", "serail", "--tiny")


def test_no_room_for_the_results(
    tmp_path: Path, lab: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """They are told all the same, and what is in the file is whole."""
    path = tmp_path / "results.jsonl"
    note = {"record": "note", "run": "0", "text": "x" * (ROOM - 400)}
    path.write_text(json.dumps(note) + "\n")
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, most[1]))
    try:
        assert lab(*STUDY, "--output", str(path)) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
    said = capsys.readouterr()
    assert f"not kept: {path}: " in said.err
    assert "poorhttp single" in said.out
    assert all(json.loads(line) for line in path.read_text().splitlines())
    assert path.stat().st_size <= ROOM


@pytest.mark.full
def test_several_studies_make_one_page(tmp_path: Path, lab: Callable[..., int]) -> None:
    """Each with the servers that it knows, and with the defaults of its own options."""
    path, page = tmp_path / "results.jsonl", tmp_path / "page.html"
    words = ("compare", "serial", "webbench", "--tiny", "--servers", "poorhttp single")
    assert lab(*words, "--output", str(path), "--page", str(page)) == 0
    runs = [record for record in records(path) if record["record"] == "run"]
    assert [run["study"] for run in runs] == ["serial", "webbench"]
    text = page.read_text()
    for title in ("One request after another", "Files of a workload", "What the study of 2010 had"):
        assert title in text
    assert text.count("<svg") >= 4


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("advize", "app.py"), "advise"),
        (("serial", "--quik"), "--quick"),
        (("advise", "app.py", "--budgt=3"), "--budget"),
        (("soak", "--modes", "forkng"), "forking"),
        (("endure", "stalld"), "stalled"),
        (("operate", "--servers", "poorhtp"), "poorhttp"),
    ],
)
def test_typing_errors_get_a_suggestion(
    words: tuple[str, ...], meant: str, capsys: pytest.CaptureFixture[str], lab: Callable[..., int]
) -> None:
    with pytest.raises(SystemExit) as ended:
        sys.exit(lab(*words))
    assert ended.value.code not in (0, None)
    assert f'; did you mean "{meant}' in capsys.readouterr().err
