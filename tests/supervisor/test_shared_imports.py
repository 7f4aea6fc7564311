"""Modules of the standard library that workers share, because the main process imports them too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from poorhttp.process.shared_imports import is_shared
from tests.support.development import answering
from tests.testkit.server import Server

APPLICATION = """
import os, sys

NAMES = ("fractions", "queue", "ctypes", "this_one")
with open("found", "a") as found:
    found.write(" ".join(name for name in NAMES if name in sys.modules) + "\\n")
import ctypes, fractions, queue, this_one
assert queue.OWN and os.path.dirname(queue.__file__) == os.getcwd()

def application(environ, start_response):
    start_response("200 OK", [])
    return [b""]
"""


#: First lines of an application: a library that patches modules, a module that is nowhere.
PATCHED = "import sys; sys.modules['eventlet'] = sys\n"
UNKNOWN = "import os, sys; sys.modules['decimal.missing'] = os\n"


@pytest.mark.parametrize(
    ("mode", "first", "found"),
    [
        ("forking", "", ["", "fractions", "fractions"]),
        ("threading", "", ["", "fractions", "fractions"]),
        ("forking", PATCHED, ["", ""]),
        ("forking", UNKNOWN, ["", "fractions"]),
    ],
    ids=["processes", "threads", "not if a library patches modules", "not what cannot be imported"],
)
def test_what_each_worker_finds_imported(
    mode: str, first: str, found: list[str], tmp_path: Path
) -> None:
    """In the order of their starts: all but the first find what that one has imported."""
    (tmp_path / "app.py").write_text(first + APPLICATION)
    # The folder of the application is in front of the standard library.
    (tmp_path / "queue.py").write_text("OWN = True")
    (tmp_path / "this_one.py").write_text("")
    with Server("app:application", mode, "--workers", str(len(found)), cwd=tmp_path):
        assert (tmp_path / "found").read_text().splitlines() == found


#: Modules that take time and memory in every process, until an application imports them.
LARGE = (
    *("asyncio", "contextvars", "dataclasses", "inspect", "json", "logging", "re", "shutil"),
    *("signal", "socket", "ssl", "subprocess", "tempfile", "threading", "typing", "urllib"),
)


def test_a_plain_worker_has_no_large_modules(tmp_path: Path) -> None:
    """But those that this version of Python imports for `python -m`."""
    bare = "import sys, runpy; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", bare], capture_output=True, text=True, check=True)
    text = "import sys\n" + answering("found", "found = ' '.join(sys.modules).encode()\n")
    (tmp_path / "app.py").write_text(text)
    with Server("app:application", "single", cwd=tmp_path) as server:
        found = server.get("/").body.decode().split()
    assert "poorhttp.worker.worker" in found
    assert not {*LARGE} & {*found} - {*run.stdout.split()}


@pytest.mark.parametrize(
    ("shared", "names"),
    [
        (True, ("queue", "email.mime.text", "xml.sax")),
        (False, ("", "ctypes", "antigravity", "unittest.__main__", "django", "os/../queue")),
    ],
)
def test_what_may_be_shared(shared: bool, names: tuple[str, ...]) -> None:
    assert {name: is_shared(name) for name in names} == dict.fromkeys(names, shared)
