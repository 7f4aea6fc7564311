"""Clients that are programs: run on a core, and read where their result is a line of JSON."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from loadtests.clients.load import ERRORS, Load, counted
from loadtests.errors import LabError
from loadtests.measure.process_tree import ProcessTree
from loadtests.programs import ROOT

MARK = "loadtests "


def parse(output: str, cpu_seconds: float = 0.0) -> Load:
    """Reads the last line of `wrk.lua`, of our clients in C, or of `python_client` (a whole load).

    Raises LabError, with what was said instead, if there is no such line.
    """
    for line in output.splitlines():
        if line.startswith(MARK):
            said = json.loads(line[len(MARK) :])
            if "octets" in said:
                return Load(**said)
            counts = said.pop("requests"), said.pop("microseconds") / 1e6, said.pop("bytes")
            errors = {kind: said.pop(kind) for kind in ERRORS}
            return counted(*counts, errors, cpu_seconds, **said)
    raise no_result("the client", output)


def no_result(client: str, output: str) -> LabError:
    """The error about a client whose output has no result in it."""
    lines = output.strip().splitlines()
    return LabError(f"{client} gave no result; it said: {' / '.join(lines[-3:]) or 'nothing'}")


def run(
    command: Sequence[str], seconds: float, core: int | None, *, interrupt: bool = False
) -> Load:
    """Runs a client that ends with our line, by itself or by an interrupt after so many seconds."""
    return parse(*outcome(command, seconds, core, interrupt=interrupt))


def outcome(
    command: Sequence[str], seconds: float, core: int | None, *, interrupt: bool = False
) -> tuple[str, float]:
    """Output of a client, and the seconds of processor time that it took on its core.

    It ends by itself or by an interrupt after so many seconds; it is killed half a minute later.
    The last line of the output says how it has ended.
    """
    began, is_over = time.monotonic(), threading.Event()
    with ExitStack() as stack:
        tree = ProcessTree(
            command, core, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        process = stack.enter_context(tree).popen
        timers = [threading.Timer(seconds + 30, process.kill)]
        if interrupt:
            # wrk counts in whole seconds only, but ends well and reports when it is interrupted. On
            # a machine so busy that it has not begun by then, it takes its whole seconds.
            timers.append(threading.Timer(seconds, _interrupt, [process.pid, is_over]))
        stack.callback(is_over.set)
        for timer in timers:
            stack.callback(timer.cancel)
            timer.start()
        assert process.stdout is not None
        output = process.stdout.read().decode("utf-8")
        _, status, usage = os.wait4(process.pid, 0)
        code = process.returncode = os.waitstatus_to_exitcode(status)
        ended = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        output += f"\n{ended} after {time.monotonic() - began:.1f} s"
        return output, usage.ru_utime + usage.ru_stime


def _interrupt(process: int, is_over: threading.Event) -> None:
    """Interrupts a program when it ignores or handles that: before, it would end without a word."""
    with suppress(FileNotFoundError, ProcessLookupError):
        while not _bears_interrupts(process):
            if is_over.wait(0.01):
                return
        os.kill(process, signal.SIGINT)


def _bears_interrupts(process: int) -> bool:
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    masks = re.findall(r"^Sig(?:Ign|Cgt):\t(\w+)", status, re.MULTILINE)
    return any(int(mask, 16) & 1 << signal.SIGINT - 1 for mask in masks)
