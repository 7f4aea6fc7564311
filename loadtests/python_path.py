"""Where the lab and the programs that it starts find the server: beside the lab, or installed.

The lab of a clone has the source of a server beside it, which a clone that nobody has built cannot
run. Then it is the installed server that is measured.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import sys
import sysconfig
import tempfile
from importlib.machinery import PathFinder
from pathlib import Path

from loadtests.programs import ROOT


def _has_core(folder: Path) -> bool:
    return any(folder.glob("_core.*.so"))


@functools.cache
def uses_installed() -> bool:
    """Whether the server beside the lab is not there or not built, and another one is installed."""
    if _has_core(ROOT / "poorhttp"):
        return False
    others = [path for path in sys.path if Path(path or os.curdir).resolve() != ROOT]
    spec = PathFinder.find_spec("poorhttp", others)
    return bool(spec and spec.origin and _has_core(Path(spec.origin).parent))


def _hides_installed() -> bool:
    return (ROOT / "poorhttp").is_dir() and uses_installed()


def prefer_installed() -> None:
    """Takes the server beside the lab off the path of this process, if it cannot run."""
    if _hides_installed():
        sys.path[:] = [path for path in sys.path if Path(path or os.curdir).resolve() != ROOT]


@functools.cache
def lab_folder() -> str:
    """The folder in which a program finds the lab, and beside it no server that cannot run."""
    if not _hides_installed():
        return str(ROOT)
    folder = tempfile.mkdtemp(prefix="loadtests-lab-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (Path(folder) / "loadtests").symlink_to(ROOT / "loadtests")
    return folder


def server_command() -> list[str]:
    """The command `poorhttp`; with `-m`, Python looks in the current folder first."""
    if uses_installed():
        return [sys.executable, str(Path(sysconfig.get_path("scripts")) / "poorhttp")]
    return [sys.executable, "-m", "poorhttp"]
