"""Programs of the lab that are written in C: from its wheel, or compiled when first needed."""

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


def shipped(source: Path) -> Path:
    """Where the wheel of the lab has the compiled program; a clone has none there."""
    return source.with_suffix("")


def program(source: Path, *libraries: str, preloaded: bool = False) -> Path:
    """The compiled program, compiled anew when its source or a header beside it changes.

    With `preloaded` it is a library for LD_PRELOAD. Raises LabError without a C compiler, or
    without the `libraries` that it is linked with.
    """
    if shipped(source).is_file():
        return shipped(source)
    texts = [source, *sorted(source.parent.glob("*.h"))]
    digest = hashlib.sha256(b"".join(text.read_bytes() for text in texts)).hexdigest()[:12]
    compiled = cache_folder() / f"{source.stem}-{digest}"
    if not compiled.exists():
        unfinished = compiled.with_suffix(f".{os.getpid()}")
        build(source, unfinished, *libraries, preloaded=preloaded)
        unfinished.rename(compiled)
    return compiled


def build(
    source: Path, target: Path, *libraries: str, static: bool = False, preloaded: bool = False
) -> None:
    """Compiles a program. Raises LabError if that fails, or if there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise LabError(
            f"the {source.stem} needs a C compiler, and there is no `cc` (Debian: apt install gcc)"
        )
    options = ("-O2", "-Wall", "-Wextra", *(["-static", "-s"] if static else []))
    options += ("-shared", "-fPIC") if preloaded else ()
    command = [compiler, *options, "-o", str(target), str(source), "-lm"]
    command += [f"-l{library}" for library in libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"the {source.stem} does not compile:\n{done.stderr}")
