"""Reports the steps of a build: what each does, how far it is, and how long it took.

On a terminal the line of a step is rewritten; elsewhere a plain line is written now and then, so
that no step is silent for long. Uses the standard library only, as all that runs before a build.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

#: Seconds between two plain lines of a step.
LINE_EVERY = 15.0

#: Seconds between two updates of the line on a terminal.
REWRITE_EVERY = 0.2

#: A bar of cargo: `Building [===>   ] 12/144: rustls, pyo3` or `Fetch [=> ] 3 complete; 9 pending`.
_BAR = re.compile(
    r"(?P<doing>[A-Z]\w+) \[[=> ]*\] "
    r"(?:(?P<done>\d+)/(?P<all>\d+)(?:: (?P<names>.*))?|(?P<rest>.+))"
)

#: What cargo does before it compiles, and while it waits for another cargo.
_BEFORE = ("Updating", "Locking", "Downloading", "Downloaded", "Blocking", "Adding", "Vendoring")

#: What cargo says of each crate; the number of crates says it shorter.
_OF_A_CRATE = ("Compiling", "Checking", "Fresh", "Finished", "Running")


class Step:
    """One step of a build, as a context: `compiling: 12 of 144 crates, pyo3 (1 min 5 s)`."""

    def __init__(
        self,
        name: str,
        text: str,
        stream: TextIO | None = None,
        *,
        rewrites: bool | None = None,
    ) -> None:
        """Write nothing yet.

        Args:
            name: of the step, one word.
            text: what it does, and about how long that takes.
            stream: where it is reported; by default standard error.
            rewrites: whether its line is rewritten; by default if the stream is a terminal.
        """
        self._name = name
        self._text = text
        self._stream = stream or sys.stderr
        if rewrites is None:
            rewrites = self._stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._rewrites = rewrites
        self._state = ""
        self._began = time.monotonic()
        self._written = self._began
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Step:
        self._write(f"{self._name}: {self._text}\n")
        self._ticker.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._ended.set()
        self._ticker.join()
        end = "\r\033[K" if self._rewrites else ""
        if kind is KeyboardInterrupt:
            # Who is interrupted says so.
            self._write(end)
            return
        how = "done in" if kind is None else "not done, after"
        self._write(f"{end}{self._name}: {how} {duration(time.monotonic() - self._began)}\n")

    def report(self, state: str) -> None:
        """Show how far the step is, soon."""
        self._state = state

    def say(self, text: str) -> None:
        """Write a line of its own that stays."""
        self._write(f"{chr(13)}\033[K{text}\n" if self._rewrites else f"{text}\n")

    def _tick(self) -> None:
        every = REWRITE_EVERY if self._rewrites else LINE_EVERY
        while not self._ended.wait(every):
            took = duration(time.monotonic() - self._began)
            line = (
                f"{self._name}: {self._state}, {took}" if self._state else f"{self._name}: {took}"
            )
            if not self._rewrites:
                self._write(f"{line}\n")
                continue
            try:
                columns = os.get_terminal_size(self._stream.fileno()).columns or 80
            except (OSError, ValueError):
                columns = 80
            # The end is cut off: a line that is wrapped cannot be rewritten.
            self._write(f"\r\033[K{line[: columns - 1]}")

    def _write(self, text: str) -> None:
        with self._lock:
            try:
                self._stream.write(text)
                self._stream.flush()
            except (OSError, ValueError):
                pass  # a terminal that was closed does not end a build


def duration(seconds: float) -> str:
    """Return `12 s` or `3 min 5 s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def read_cargo(fd: int, report: Callable[[str], None], forward: Callable[[bytes], object]) -> None:
    """Read what cargo writes to standard error, until its end.

    Args:
        fd: the end of a pipe; cargo must have `CARGO` of the environment.
        report: takes how far it is.
        forward: takes the other lines, such as warnings and errors.
    """
    rest = b""
    while received := os.read(fd, 1 << 16):
        *pieces, rest = re.split(rb"(?<=[\r\n])", rest + received)
        for piece in pieces:
            _read_piece(piece, report, forward)
    if rest:
        _read_piece(rest, report, forward)


#: Has cargo show its bars also where it writes to no terminal.
CARGO = {"CARGO_TERM_PROGRESS_WHEN": "always", "CARGO_TERM_PROGRESS_WIDTH": "100"}


def _read_piece(
    piece: bytes, report: Callable[[str], None], forward: Callable[[bytes], object]
) -> None:
    text = piece.decode("utf-8", "replace").strip()
    word = text.partition(" ")[0]
    if bar := _BAR.fullmatch(text):
        if bar["all"]:
            names = f", {bar['names']}" if bar["names"] else ""
            report(f"{bar['done']} of {bar['all']} crates{names}")
        else:
            report(f"{bar['doing'].lower()}: {bar['rest']}")
    elif word in _BEFORE:
        report(f"{word.lower()}{text[len(word) :]}")
    elif text and word not in _OF_A_CRATE:
        forward(piece)
