"""CONTRIBUTING.md and docs/internals: the files and folders that they name exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.testkit.server import ROOT

#: Decision records name what there was at their date.
PAGES = [
    ROOT / "CONTRIBUTING.md",
    *(path for path in (ROOT / "docs/internals").rglob("*.md") if path.parent.name != "decisions"),
]

#: A path in backticks, by its ending or by the slash after a folder; `NAME` stands for any.
NAMED = re.compile(r"`((?:[\w.@-]+/)*[\w.@-]+(?:\.(?:rs|py|pyi|c|txt|ini|toml|sh|md)|/))`")

#: Files of projects, not of this one.
OTHERS = {"manage.py", "gunicorn.conf.py"}


@pytest.fixture(scope="module")
def files() -> str:
    """All files of the tree, each in a line with a slash before it."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.check_output(command, cwd=ROOT, text=True, timeout=60)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no clone")
    return "".join(f"\n/{name}\n" for name in listed.splitlines())


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_files_exist(page: Path, files: str) -> None:
    named = set(NAMED.findall(page.read_text(encoding="utf-8"))) - OTHERS
    is_there = {
        name: f"/{name}" in files if name.endswith("/") else f"/{name}\n" in files
        for name in named
        if "NAME" not in name
    }
    assert [name for name, found in is_there.items() if not found] == []
