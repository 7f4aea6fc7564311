"""Modules of the standard library that workers share, because the main process imports them too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from poorhttp.process.shared_imports import is_shared
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


def found(folder: Path, mode: str, *options: str, first: str = "") -> list[str]:
    """What of `NAMES` each worker has found imported, in the order of their starts."""
    (folder / "app.py").write_text(first + APPLICATION)
    # The folder of the application is in front of the standard library.
    (folder / "queue.py").write_text("OWN = True")
    (folder / "this_one.py").write_text("")
    with Server("app:application", mode, *options, cwd=folder):
        return (folder / "found").read_text().splitlines()


#: Modules that take time and memory in every process, until an application imports them.
LARGE = (
    *("asyncio", "contextvars", "dataclasses", "inspect", "json", "logging", "re", "shutil"),
    *("signal", "socket", "ssl", "subprocess", "tempfile", "threading", "typing", "urllib"),
)


def test_a_plain_worker_has_no_large_modules(tmp_path: Path) -> None:
    """But those that this version of Python imports for `python -m`."""
    bare = "import sys, runpy; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", bare], capture_output=True, text=True, check=True)
    (tmp_path / "app.py").write_text(
        "import sys\nfound = ' '.join(sys.modules).encode()\n"
        "def application(environ, start_response):\n"
        "    start_response('200 OK', [])\n    return [found]\n"
    )
    with Server("app:application", "single", cwd=tmp_path) as server:
        found = server.get("/").body.decode().split()
    assert "poorhttp.worker.worker" in found
    assert not {*LARGE} & {*found} - {*run.stdout.split()}


@pytest.mark.parametrize("mode", ["forking", "threading"])
def test_shared_with_all_but_the_first(mode: str, tmp_path: Path) -> None:
    assert found(tmp_path, mode, "--workers", "3") == ["", "fractions", "fractions"]


def test_not_shared_if_a_library_patches_modules(tmp_path: Path) -> None:
    first = "import sys; sys.modules['eventlet'] = sys"
    assert found(tmp_path, "forking", "--workers", "2", first=first) == ["", ""]


def test_one_that_cannot_be_imported_is_left_out(tmp_path: Path) -> None:
    first = "import os, sys; sys.modules['decimal.missing'] = os; "
    assert found(tmp_path, "forking", "--workers", "2", first=first) == ["", "fractions"]


@pytest.mark.parametrize("name", ["queue", "email.mime.text", "xml.sax"])
def test_may_be_shared(name: str) -> None:
    assert is_shared(name)


@pytest.mark.parametrize(
    "name", ["", "ctypes", "antigravity", "unittest.__main__", "django", "os/../queue"]
)
def test_may_not_be_shared(name: str) -> None:
    assert not is_shared(name)
