"""The floor under every comparison: a bare epoll loop in C, compiled when first needed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from loadtests.errors import LabError

SOURCE = Path(__file__).with_name("floor.c")


def cache_folder() -> Path:
    """Where the lab keeps what it makes for itself, below the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "poorhttp-loadtests"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def build() -> Path:
    """The compiled program, compiled anew when its source changes.

    Raises LabError without a C compiler.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        raise LabError(
            "the floor needs a C compiler, and there is no `cc` (Debian: apt install gcc)"
        )
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    program = cache_folder() / f"floor-{digest}"
    if not program.exists():
        unfinished = program.with_suffix(f".{os.getpid()}")
        done = subprocess.run(
            [compiler, "-O2", "-Wall", "-Wextra", "-o", str(unfinished), str(SOURCE)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise LabError(f"the floor does not compile:\n{done.stderr}")
        unfinished.rename(program)
    return program
