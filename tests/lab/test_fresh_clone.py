"""The lab in a clone that is not built, with an installed server: as its guide begins."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.testkit.client import HANG
from tests.testkit.server import ROOT

LAUNCHER = """\
#!{python}
import sys
from poorhttp.cli import main
sys.exit(main())
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment as `pip install '.[lab]'` makes it, but for the compilation."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/*/site-packages")
    shutil.copytree(
        ROOT / "poorhttp", packages / "poorhttp", ignore=shutil.ignore_patterns("__pycache__")
    )
    # What the lab needs besides; an editable server there is not read: it has a `.pth` of its own.
    (packages / "others.pth").write_text("\n".join(site.getsitepackages()))
    command = folder / "bin" / "poorhttp"
    command.write_text(LAUNCHER.format(python=folder / "bin" / "python"))
    command.chmod(0o755)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of lab and server, without anything that is built."""
    folder = tmp_path_factory.mktemp("clone")
    left_out = shutil.ignore_patterns("__pycache__", "*.so", "results")
    for name in ("loadtests", "apps", "poorhttp", "proxy"):
        shutil.copytree(ROOT / name, folder / name, ignore=left_out)
    return folder


def lab(python: Path, folder: Path, *words: str, **environ: str) -> str:
    """What a command of the lab prints, run in a folder; it must not fail."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-m", "loadtests", *words],
        cwd=folder,
        env={**kept, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_study_in_another_folder(python: Path, clone: Path, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    words = ["serial", "--tiny", "--servers", "poorhttp single", "--output", str(path)]
    words += ["--page", str(tmp_path / "page.html")]
    lab(python, tmp_path, *words, PYTHONPATH=str(clone))
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [one for one in records if one["record"] in ("missing", "failure")] == []
    assert {one["server"] for one in records if one["record"] == "sample"} == {"poorhttp single"}


def test_a_server_that_is_built_is_measured(python: Path) -> None:
    """In a clone with a built server it is that one: who develops it measures what he has built."""
    code = "from loadtests import python_path; print(python_path.uses_installed())"
    done = subprocess.run(
        [python, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=HANG
    )
    assert done.stdout == "False\n"
    assert sys.executable != str(python)
