"""System calls of processes, counted by strace while something is done."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from loadtests import programs
from loadtests.errors import ServerFailure
from loadtests.measure.waiting import HANG, wait_until

T = TypeVar("T")


def counted(processes: Sequence[int], do: Callable[[], T]) -> tuple[T, dict[str, int]]:
    """The result of `do`, and how often these processes made each system call meanwhile.

    With their threads, and what they start. They are slower than usual: strace stops them at each
    call. Raises LabError if strace is missing, ServerFailure if it may not look at them.
    """
    command = [programs.path("strace"), "-qq", "-f", "-c", "-U", "name,calls"]
    with tempfile.NamedTemporaryFile("r") as file, tempfile.TemporaryFile() as words:
        command += ["-o", file.name, *(word for one in processes for word in ("-p", str(one)))]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=words) as strace:
            try:
                attached = wait_until(
                    lambda: strace.poll() is not None or _are_traced(processes), HANG
                )
                if attached and strace.poll() is None:
                    result = do()
            finally:
                strace.send_signal(signal.SIGINT)
        if counts := parse(file.read()):
            return result, counts
        words.seek(0)
        said = words.read().decode(errors="replace").strip() or "strace counts none"
        raise ServerFailure(said.splitlines()[-1])


def parse(summary: str) -> dict[str, int]:
    """The calls in the summary of strace, the most frequent first."""
    found = re.findall(r"^(\w+) +(\d+)\s*$", summary, re.MULTILINE)
    counts = {name: int(count) for name, count in found if name != "total"}
    return dict(sorted(counts.items(), key=lambda one: -one[1]))


def _are_traced(processes: Sequence[int]) -> bool:
    """Whether somebody traces all threads of those of these processes that have not ended."""
    states = []
    for thread in (
        file for one in processes for file in Path(f"/proc/{one}/task").glob("*/status")
    ):
        with contextlib.suppress(OSError):
            states.append(thread.read_text(encoding="utf-8"))
    return bool(states) and not any("\nTracerPid:\t0\n" in one for one in states)
