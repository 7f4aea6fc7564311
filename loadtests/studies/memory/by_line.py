"""Memory by line of the example applications, measured with memory_profiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from loadtests.errors import ServerFailure
from loadtests.measure.cpu_affinity import pinned
from loadtests.measure.waiting import patience
from loadtests.python_path import lab_folder
from loadtests.reporting.model import MIB, Column, Section, Table
from loadtests.servers.registry import Server
from loadtests.stats.results import Results
from loadtests.store import without_paths
from loadtests.studies.engine import Trial
from loadtests.studies.memory.moments import KIB
from loadtests.studies.memory.profiled import EXAMPLES, Line

SCENARIO = "by line"
SECONDS = patience(60.0)
"""Within which an example must have been called often enough."""
PROFILED = "loadtests.studies.memory.profiled"
COLUMNS = (
    Column("line"),
    Column("code"),
    Column("held after it", "MiB", 2, MIB),
    Column("increment", "KiB", 1, KIB),
    Column("runs"),
)
SUBJECTS = {
    Server(one.name, "", f"{{python}} -m {PROFILED}", "memory-profiler", one.package): one
    for one in EXAMPLES
}
"""What stands for the examples where servers are named; no server takes part."""


def take(trial: Trial, calls: int) -> str:
    """Calls an example so often in a process of its own."""
    lines = profile(trial.server.name, calls, trial.lab.server_core)
    example = SUBJECTS[trial.server]
    trial.sample(
        scenario=SCENARIO,
        file=f"{example.folder}/{example.module}.py",
        function=example.function,
        calls=calls,
        lines=lines,
    )
    return f"{sum(line.grown or 0 for line in lines) * KIB:,.0f} KiB grown in {calls:,} calls"


def profile(name: str, calls: int, core: int | None) -> list[Line]:
    """The lines of an example. Raises ServerFailure if it fails or takes too long."""
    try:
        done = subprocess.run(
            [*pinned(core), sys.executable, "-m", PROFILED, name, str(calls)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env={**os.environ, "PYTHONPATH": lab_folder()},
            cwd=lab_folder(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ServerFailure(f"not ready after {SECONDS:.0f} s") from None
    if done.returncode != 0:
        last = without_paths(done.stderr.strip().rpartition("\n")[2])
        raise ServerFailure(f"it ended with exit code {done.returncode}: {last}")
    return [Line(*line) for line in json.loads(done.stdout)]


def section(results: Results) -> Section:
    text = [
        "Which lines of the example applications take memory? memory_profiler reads the "
        "resident set of the process after each line; increments are added up over all "
        "calls. The first line is where counting begins, so it has none."
    ]
    parts = []
    said, highest = "No line takes any memory.", 0
    found = {s["server"]: s for s in results.samples if s["scenario"] == SCENARIO}
    for name, one in found.items():
        lines = [Line(*line) for line in one["lines"]]
        grown = {line.number: line.grown for line in lines if line.grown}
        total, taken = sum(grown.values()), "no line takes any"
        if grown:
            most = max(grown, key=lambda number: grown[number])
            taken = (
                f"{total * KIB:,.0f} KiB in all its lines, most in line {most} "
                f"({grown[most] * KIB:,.0f} KiB)"
            )
        if total > highest:
            said, highest = f"{name} takes the most memory: {taken}.", total
        text.append(f"{name}: {one['calls']:,} calls, {taken}.")
        parts.append(
            Table(
                "memory-lines-" + "-".join(name.lower().replace(",", "").split()),
                f"{name}: {one['function']} in {one['file']}",
                COLUMNS,
                [
                    [str(line.number), line.text, line.held, line.grown, float(line.runs)]
                    for line in lines
                    if line.text.strip()
                ],
                note=f"{one['calls']:,} calls.",
            )
        )
    return Section("Memory by line", text, parts, said)
