"""Figures of two commits: instructions by callgrind, and memory."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from loadtests.commits import footprint, instructions
from loadtests.commits.builds import Build
from tests.testkit.server import ROOT


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
@pytest.mark.parametrize("mode", ["single", "gevent"])
def test_instructions_are_counted(mode: str) -> None:
    found = instructions.count(Build("this", ROOT), mode, requests=50, rounds=2)
    kept, post, file, handshake = (min(found[subject.name]) for subject in instructions.SUBJECTS)
    assert 1_000 < file < kept < post < handshake


def test_memory_is_read_of_a_session_and_all_of_it_is_ended(tmp_path: Path) -> None:
    sleeping = "import os, time; os.fork(); time.sleep(600)"
    command = shlex.join([sys.executable, "-c", sleeping])
    plan = tmp_path / "plan"
    lines = [("two", "0", "/", "/", command), ("silent", "1", "/", "/", command)]
    plan.write_text("".join("\t".join(line) + "\n" for line in lines))
    done = subprocess.run(
        ["sh", str(footprint.SCRIPT), str(plan), str(tmp_path / "raw"), "1", "test 2 ="],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "silent does not answer" in done.stderr
    text = (tmp_path / "raw").read_text()
    assert text.count("# 1\ttwo\n") == text.count("Pss_Anon:") == 2
    assert "silent" not in text


def test_ratios_are_those_of_the_medians(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pss = {"single @ old": (1024, 3072, 2048), "single @ new": (4096, 1024, 1024), "peer": (512,)}
    lines = [
        f"# {number}\t{name}\nPss: {size} kB\nPss_Anon: {size // 2} kB\n"
        for name, sizes in pss.items()
        for number, size in enumerate(sizes)
    ]
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "raw").write_text("".join(lines))
    footprint.print_table(folder, "old")
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:4]]
    assert rows == [
        ["single", "@", "old", "1", "2.00", "1.00"],
        ["single", "@", "new", "1", "1.00", "0.50", "0.500", "0.500"],
        ["peer", "1", "0.50", "0.25"],
    ]
    assert not folder.exists()
