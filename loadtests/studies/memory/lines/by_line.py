"""Memory by line of the example applications, measured with memory_profiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from loadtests.errors import ServerFailure
from loadtests.measure.cpu_affinity import pinned
from loadtests.programs import ROOT
from loadtests.servers.registry import Server
from loadtests.store import without_paths
from loadtests.studies.engine import Lab, Step
from loadtests.studies.memory.lines.examples import Example, Line

SCENARIO = "by line"
SECONDS = 60.0
"""Within which an example must have been called often enough."""
PROFILED = "{python} -m loadtests.studies.memory.lines.profiled"


def step(lab: Lab, experiment: str, example: Example, calls: int) -> Step:
    """Calls an example so often in a process of its own; no server takes part."""
    subject = Server(example.name, "", PROFILED, "memory-profiler", example.package)

    def action() -> str:
        lines = profile(example.name, calls, lab.server_core)
        lab.store.add(
            "sample",
            experiment=experiment,
            scenario=SCENARIO,
            server=example.name,
            round=0,
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
    command = [*pinned(core), sys.executable, "-m", "loadtests.studies.memory.lines.profiled"]
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
