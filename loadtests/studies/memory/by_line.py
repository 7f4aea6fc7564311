"""Memory by line of the example applications, measured with memory_profiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from loadtests.errors import ServerFailure
from loadtests.measure.cpu_affinity import pinned
from loadtests.programs import ROOT
from loadtests.reporting.model import Cell, Column, Section, Table
from loadtests.servers.registry import Server
from loadtests.stats.results import Results
from loadtests.store import Record, without_paths
from loadtests.studies import sample
from loadtests.studies.engine import Lab, Step
from loadtests.studies.memory.examples import Example, Line

SCENARIO = "by line"
SECONDS = 60.0
"""Within which an example must have been called often enough."""
PROFILED = "{python} -m loadtests.studies.memory.profiled"


def step(lab: Lab, experiment: str, example: Example, calls: int) -> Step:
    """Calls an example so often in a process of its own; no server takes part."""
    subject = Server(example.name, "", PROFILED, "memory-profiler", example.package)

    def action() -> str:
        lines = profile(example.name, calls, lab.server_core)
        sample.store(
            lab,
            experiment,
            subject,
            0,
            scenario=SCENARIO,
            file=f"{example.folder}/{example.module}.py",
            function=example.function,
            calls=calls,
            lines=lines,
        )
        grown = sum(line.grown or 0 for line in lines)
        return f"{grown / 1024:,.0f} KiB grown in {calls:,} calls"

    return Step(subject, f"{experiment} by line, {example.name}", action)


def profile(name: str, calls: int, core: int | None) -> list[Line]:
    """What `profiled` says. Raises ServerFailure if it fails or takes too long."""
    command = [*pinned(core), sys.executable, "-m", "loadtests.studies.memory.profiled"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            [*command, name, str(calls)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=environ,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ServerFailure(f"not ready after {SECONDS:.0f} s") from None
    if done.returncode != 0:
        last = without_paths(done.stderr.strip().rpartition("\n")[2])
        raise ServerFailure(f"it ended with exit code {done.returncode}: {last}")
    return [Line(*line) for line in json.loads(done.stdout)]


COLUMNS = (
    Column("line"),
    Column("code"),
    Column("held after it", "MiB", 2, 1 / 2**20),
    Column("increment", "KiB", 1, 1 / 2**10),
    Column("runs"),
)


def section(results: Results) -> list[Section]:
    """A table for each example, if there are any."""
    found = {s["server"]: s for s in results.samples if s["scenario"] == SCENARIO}
    if not found:
        return []
    text = [
        "Which lines of the example applications take memory? memory_profiler looks at the "
        "resident set of the process after each line; increments are added up over all "
        "calls. The first line is where counting begins, so it has none.",
        *(f"{one['server']}: {one['calls']:,} calls, {_most(one)}." for one in found.values()),
    ]
    most = max(found.values(), key=_grown)
    said = "No line takes any memory."
    if _grown(most):
        said = f"{most['server']} takes the most memory: {_most(most)}."
    return [Section("Memory by line", text, [_table(one) for one in found.values()], said)]


def _grown(one: Record) -> int:
    return sum(Line(*line).grown or 0 for line in one["lines"])


def _most(one: Record) -> str:
    grown = {line.number: line.grown for line in (Line(*of) for of in one["lines"]) if line.grown}
    if not grown:
        return "no line takes any"
    most = max(grown, key=lambda number: grown[number])
    return (
        f"{_grown(one) / 2**10:,.0f} KiB in all its lines, most in line {most} "
        f"({grown[most] / 2**10:,.0f} KiB)"
    )


def _table(one: Record) -> Table:
    rows: list[list[Cell]] = [
        [str(line.number), line.text, line.held, line.grown, float(line.runs)]
        for line in (Line(*of) for of in one["lines"])
        if line.text.strip()
    ]
    name = str(one["server"])
    return Table(
        "memory-lines-" + "-".join(name.lower().replace(",", "").split()),
        f"{name}: {one['function']} in {one['file']}",
        COLUMNS,
        rows,
        note=f"{one['calls']:,} calls.",
    )
