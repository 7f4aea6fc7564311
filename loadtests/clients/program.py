"""Clients that are programs: run on a core, and read where their result is a line of JSON."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import ExitStack

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
    """
    with ExitStack() as stack:
        tree = ProcessTree(
            command, core, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        process = stack.enter_context(tree).popen
        timers = [threading.Timer(seconds + 30, process.kill)]
        if interrupt:
            # wrk counts in whole seconds only, but ends well and reports when it is interrupted. On
            # a machine so busy that it has not begun by then, it takes its whole seconds.
            timers.append(threading.Timer(seconds, process.send_signal, [signal.SIGINT]))
        for timer in timers:
            stack.callback(timer.cancel)
            timer.start()
        assert process.stdout is not None
        output = process.stdout.read().decode("utf-8")
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return output, usage.ru_utime + usage.ru_stime
