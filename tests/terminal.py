"""A program in a terminal: pexpect reads and types, pyte is the screen that a person sees."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pexpect
import pyte
from pexpect.fdpexpect import fdspawn

from tests.client import HANG
from tests.server import ROOT, environment

T = TypeVar("T")
Program = TypeVar("Program", bound="Terminal")


class Terminal:
    """A program whose standard error is a terminal.

    With `controls` input and output are that too, and it controls the program: Ctrl-C interrupts
    it, and to close the window hangs it up.

    Attributes:
        process: the program; a process group of its own.
        written: what it has written so far, colours and all.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        controls: bool = False,
        columns: int = 80,
        rows: int = 24,
        env: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
    ) -> None:
        self.written = ""
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self._screen)
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        kept = {key: text for key, text in environment().items() if "COLOR" not in key}
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *command] if controls else command,
            stdin=theirs if controls else subprocess.DEVNULL,
            stdout=theirs if controls else subprocess.DEVNULL,
            stderr=theirs,
            cwd=cwd,
            env={**kept, "TERM": "xterm-256color", **(env or {})},
            # `setsid` does it itself.
            start_new_session=not controls,
        )
        os.close(theirs)
        self._terminal = fdspawn(ours, encoding="utf-8", codec_errors="backslashreplace")
        self._terminal.delaybeforesend = None
        self._terminal.logfile_read = self

    def __enter__(self: Program) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        """End the program, and close the window."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait(HANG)
        self.close()

    def write(self, text: str) -> None:
        """Show what the program has written; pexpect calls this."""
        self.written += text
        self._stream.feed(text)

    def flush(self) -> None:
        """Do nothing; pexpect calls this."""

    def text(self) -> str:
        """What stands on the screen by now, line by line, without the blanks at their ends."""
        with suppress(pexpect.EOF, pexpect.TIMEOUT, ValueError):
            while True:
                self._terminal.read_nonblocking(1 << 16, 0)
        columns, rows = range(self._screen.columns), range(self._screen.cursor.y + 1)
        lines = ("".join(self._screen.buffer[row][at].data for at in columns) for row in rows)
        return "\n".join(line.rstrip() for line in lines)

    def style(self, at: int) -> pyte.screens.Char:
        """How the character at an index of `text()` looks: its `fg`, and whether it is `bold`."""
        before = self.text()[:at].split("\n")
        return self._screen.buffer[len(before) - 1][len(before[-1])]

    def is_coloured(self) -> bool:
        """Whether anything on the screen has a colour."""
        cells = (cell for row in self._screen.buffer.values() for cell in row.values())
        return any(cell.fg != "default" for cell in cells)

    def wait(self, condition: Callable[[str], T | None], what: str) -> T:
        """Wait until something is true of the text on the screen."""
        end = time.monotonic() + HANG
        while not (found := condition(self.text())):
            try:
                self._terminal.read_nonblocking(1 << 16, max(0.0, end - time.monotonic()))
            except (pexpect.EOF, pexpect.TIMEOUT) as error:
                shown = f"the screen is\n{self.text()}"
                raise AssertionError(f"{what}: {type(error).__name__}; {shown}") from None
        return found

    def wait_text(self, text: str) -> None:
        """Wait until a text stands on the screen."""
        self.wait(lambda shown: text in shown, text)

    def type(self, keys: str) -> None:
        """Press keys."""
        self._terminal.send(keys)

    def ended(self) -> int:
        """Show all that the program still writes, and wait for its end; the exit code."""
        if not self._terminal.closed:
            self._terminal.expect(pexpect.EOF, timeout=HANG)
        return self.process.wait(HANG)

    def close(self) -> None:
        """Close the window."""
        if not self._terminal.closed:
            self._terminal.close()
