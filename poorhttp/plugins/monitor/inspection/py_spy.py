"""Stacks and profiles of a process by py-spy, which reads them from outside.

It needs the right to trace the worker: that of root, or the same user where the kernel allows it
(`/proc/sys/kernel/yama/ptrace_scope`). It also shows functions of C where it can.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

#: Its name, beside Python or in the path.
PROGRAM = "py-spy"

#: Seconds for stacks. Reading the symbols of large libraries takes long.
TIMEOUT = 20.0

#: Samples of a profile in a second.
RATE = 50

#: Most bytes that are read of its output.
MOST_BYTES = 16 << 20


class Recording:
    """A profile that is being recorded."""

    def __init__(self, process: subprocess.Popen[bytes], file: str) -> None:
        self.process = process
        self.file = file


class PySpy:
    """The program, if it is installed.

    Attributes:
        problem: why it told nothing.
    """

    def __init__(self) -> None:
        beside = os.path.join(os.path.dirname(sys.executable), PROGRAM)
        # Not of the current folder, which a PATH with "." or an empty entry names.
        folders = os.pathsep.join(filter(os.path.isabs, os.get_exec_path()))
        found = beside if os.access(beside, os.X_OK) else shutil.which(PROGRAM, path=folders)
        self._program = found
        self.problem = "" if self._program else "py-spy, which could look into it, is not installed"
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def dump(self, pid: int) -> list[dict[str, Any]]:
        """Return the stacks of a process; empty if it cannot look into it."""
        # Functions of C are not found on each processor, and not in each container.
        for options in (["--native"], []):
            text = self._run("dump", "--json", "--pid", str(pid), *options)
            with suppress(ValueError, TypeError, KeyError, AttributeError):
                if text and (found := [_stack(each) for each in json.loads(text)]):
                    return found
            if not self._program:
                break
        return []

    def record(self, pid: int, seconds: float) -> Recording | None:
        """Begin to record a profile; `None` if it cannot look into the process."""
        if not self._program or not self._run("dump", "--pid", str(pid)):
            return None
        self._folder = self._folder or tempfile.TemporaryDirectory(prefix="poorhttp-")
        file = os.path.join(self._folder.name, f"{pid}")
        words = [
            *(self._program, "record", "--pid", str(pid), "--output", file, "--format", "raw"),
            *("--duration", str(math.ceil(seconds)), "--rate", str(RATE)),
            *("--idle", "--function"),
        ]
        try:
            null = subprocess.DEVNULL
            process = subprocess.Popen(words, stdin=null, stdout=null, stderr=null)
        except OSError as error:
            self.problem = f"py-spy: {error.strerror}"
            return None
        return Recording(process, file)

    def recorded(self, recording: Recording) -> dict[str, int]:
        """Return the stacks of a recording that ends now, and their milliseconds."""
        process = recording.process
        try:
            process.wait(2.0)
        except subprocess.TimeoutExpired:
            # It writes what it has.
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(TIMEOUT)
        if process.poll() is None:
            process.kill()
            process.wait()
        found: dict[str, int] = {}
        with suppress(OSError), open(recording.file, "rb") as file:
            for line in _text(file).splitlines():
                stack, _, number = line.rpartition(" ")
                if stack and number.isdecimal():
                    found[stack] = found.get(stack, 0) + int(number) * 1000 // RATE
        return found

    def close(self) -> None:
        """Remove its files."""
        if self._folder is not None:
            self._folder.cleanup()

    def _run(self, *arguments: str) -> str:
        if not self._program:
            return ""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                subprocess.run(
                    [self._program, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    timeout=TIMEOUT,
                    check=True,
                )
            except subprocess.TimeoutExpired:
                self.problem = f"py-spy took longer than {TIMEOUT:.0f} s"
                return ""
            except (OSError, subprocess.CalledProcessError):
                err.seek(0)
                self.problem = problem(_text(err))
                return ""
            out.seek(0)
            return _text(out)


def problem(text: str) -> str:
    """Return the last cause in what py-spy has written before it failed."""
    # The causes are numbered if there are several; with RUST_BACKTRACE, functions follow.
    causes = text.partition("\nStack backtrace:")[0].strip().splitlines()
    if not causes:
        return "py-spy has failed"
    cause = causes[-1].strip()
    number, colon, rest = cause.partition(": ")
    return f"py-spy: {rest if colon and number.isdecimal() else cause}"[:300]


def _stack(thread: dict[str, Any]) -> dict[str, Any]:
    """Return a thread of `py-spy dump --json` as a stack."""
    frames = [
        {
            "file": str(frame.get("filename") or ""),
            "line": int(frame.get("line") or 0),
            "function": str(frame.get("name") or "?"),
        }
        for frame in thread["frames"]
    ]
    thread_id = int(thread.get("os_thread_id") or 0)
    name = str(thread.get("thread_name") or "") or f"{int(thread['thread_id']):#x}"
    return {
        "name": "main" if name == "MainThread" else name,
        "kind": "thread",
        "thread": thread_id,
        "idle": False,
        "request": None,
        "frames": frames[::-1],
        "holds": bool(thread.get("owns_gil")),
    }


def _text(file: IO[bytes]) -> str:
    return file.read(MOST_BYTES).decode("utf-8", "replace")
