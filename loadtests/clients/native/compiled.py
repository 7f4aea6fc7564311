"""Programs of the lab that are written in C, compiled when first needed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from loadtests.errors import LabError


def cache_folder() -> Path:
    """The lab's own cache, below the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "poorhttp-loadtests"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def program(source: Path, *libraries: str) -> Path:
    """The compiled program, compiled anew when its source or a header beside it changes.

    Raises LabError without a C compiler, or without the `libraries` that it is linked with.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        raise LabError(
            f"the {source.stem} needs a C compiler, and there is no `cc` (Debian: apt install gcc)"
        )
    texts = [source, *sorted(source.parent.glob("*.h"))]
    digest = hashlib.sha256(b"".join(text.read_bytes() for text in texts)).hexdigest()[:12]
    compiled = cache_folder() / f"{source.stem}-{digest}"
    if not compiled.exists():
        unfinished = compiled.with_suffix(f".{os.getpid()}")
        done = subprocess.run(
            [
                *(compiler, "-O2", "-Wall", "-Wextra", "-o", str(unfinished), str(source), "-lm"),
                *(f"-l{library}" for library in libraries),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise LabError(f"the {source.stem} does not compile:\n{done.stderr}")
        unfinished.rename(compiled)
    return compiled
