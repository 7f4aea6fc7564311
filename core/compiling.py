"""Compiles the core for `setup.py` with progress messages, and explains what is missing.

`make` reads the progress from a pipe (`PIPE`). Without make it goes to the terminal of pip, which
shows nothing of what it builds, or to standard error, which pip shows with `--verbose`.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TextIO

import bootstrap
import progress

#: Variable with the path of a pipe for the progress: a line each time.
PIPE = "CORE_BUILD_PROGRESS"

#: Variable with the names of extension modules, `_core`, that are built; without it, all are.
MODULES = "CORE_BUILD_MODULES"

#: Seconds of the processor that all crates take which compile beside each other, and seconds that
#: the last steps take, which optimise all of a module together in one thread: of what every server
#: loads, and of all modules.
CORE = (100, 40)
ALL = (300, 120)

#: Lines of cargo in which the cause of a failure is looked for.
MOST_LINES = 300

NO_NETWORK = re.compile(
    r"spurious network error|failed to (?:download|fetch|get)\b|[Cc]ould not (?:connect|resolve)|"
    r"unable to (?:update registry|get packages)|attempting to make an HTTP request|--offline"
)
NO_MEMORY = re.compile(r"signal: 9, SIGKILL|[Cc]annot allocate memory|out of memory")
NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")


def about() -> str:
    """Return about how long it takes to compile here what is chosen, in words."""
    cores = len(os.sched_getaffinity(0))
    beside_each_other, alone = CORE if os.environ.get(MODULES) else ALL
    minutes = max(1, round((beside_each_other / cores + alone) / 60))
    return f"about {minutes} minute{'s' * (minutes > 1)} with {cores} core{'s' * (cores > 1)}"


def is_vendored() -> bool:
    """Whether the crates are in the source, as in the archive of `make sdist`."""
    return os.path.isdir(os.path.join(bootstrap.ROOT, "core", "vendor"))


@contextmanager
def reported() -> Iterator[None]:
    """Report the progress of cargo's runs in this block, which write to standard error.

    Raises:
        SystemExit: what compiling needs is missing, or cargo has failed for want of something; in
            words.
    """
    environment, version, cargo = bootstrap.found_rust()
    if environment is None:
        bootstrap.stop(bootstrap.no_rust(version))
    else:
        os.environ.update(environment)
    os.environ.update(progress.CARGO)
    lines: deque[str] = deque(maxlen=MOST_LINES)
    try:
        with ExitStack() as stack:
            report = stack.enter_context(_reporting(version, cargo))
            stack.enter_context(_read_errors(report, lines))
            yield
    except Exception as error:
        words = explained("".join(lines))
        if not words:
            raise
        raise SystemExit(f"\n{words}\n") from error


def explained(text: str) -> str:
    """Return what is wrong if cargo has failed with these lines for want of something; or empty."""
    if NO_NETWORK.search(text):
        return (
            "The core of poorhttp is compiled from Rust, and cargo cannot fetch the crates\n"
            "(libraries) that it consists of from https://index.crates.io: see above why.\n"
            "    Behind a proxy, set https_proxy, and run the command again.\n"
            "    Without a network, install a wheel or the archive of `make sdist`,\n"
            "    with all crates in it. Make them on a machine with a network:\n"
            "        pip install --no-index --no-build-isolation poorhttpd-*.tar.gz"
        )
    if NO_MEMORY.search(text):
        return (
            "The compiler was killed: there is too little memory. With one compiler at a time it\n"
            "takes less: set CARGO_BUILD_JOBS=1, and run the command again."
        )
    if NO_SPACE.search(text):
        return (
            "The disk is full: the compiled crates need about 1 GB in core/target, or in the\n"
            "folder that CARGO_TARGET_DIR names."
        )
    return ""


@contextmanager
def _reporting(version: tuple[int, ...], cargo: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that takes how far cargo is."""
    if path := os.environ.get(PIPE):
        with open(path, "w", encoding="utf-8") as pipe:

            def send(state: str) -> None:
                with suppress(OSError):
                    pipe.write(f"{state}\n")
                    pipe.flush()

            yield send
        return
    crates = "the crates are in the archive" if is_vendored() else "crates from crates.io"
    needs = f"Rust {bootstrap.dotted(version)} ({cargo}), a C compiler, {crates}"
    with ExitStack() as stack:
        stream = _terminal_of_parent()
        if stream is not None:
            stack.enter_context(stream)
            # pip is in the middle of a line.
            stream.write("\n")
        step = progress.Step(
            "compiling",
            f"the core of poorhttp: {about()}; needs {needs}",
            stream or sys.stderr,
            rewrites=None if stream is None else False,
        )
        yield stack.enter_context(step).report


@contextmanager
def _read_errors(report: Callable[[str], None], lines: deque[str]) -> Iterator[None]:
    """Read what this process and its children write to standard error: a thread passes it on."""
    sys.stderr.flush()
    own = os.dup(2)
    read, write = os.pipe()

    def forward(piece: bytes) -> None:
        lines.append(piece.decode("utf-8", "replace"))
        with suppress(OSError):
            os.write(own, piece)

    reader = threading.Thread(target=progress.read_cargo, args=(read, report, forward))
    os.dup2(write, 2)
    os.close(write)
    reader.start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(own, 2)
        reader.join()
        os.close(read)
        os.close(own)


def _terminal_of_parent() -> TextIO | None:
    """Open the terminal on which the parent, pip, shows what it does; None if it shows none.

    With `--verbose` standard error of this process is shown there already.
    """
    if os.isatty(2):
        return None
    try:
        with open(f"/proc/{os.getppid()}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
        quiet = {b"--quiet", b"-q", b"-qq", b"--verbose", b"-v", b"-vv", b"-vvv"}
        where = os.readlink(f"/proc/{os.getppid()}/fd/1")
        if quiet.intersection(words) or not where.startswith(("/dev/pts/", "/dev/tty")):
            return None
        return open(os.open(where, os.O_WRONLY | os.O_NOCTTY), "w", encoding="utf-8")
    except OSError:
        return None
