"""Compares the client of the lab with Apache Bench (ab), the client of the study of 2005."""

from __future__ import annotations

import csv
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from loadtests import programs
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.measure.cpu_affinity import pinned
from loadtests.servers.registry import Server
from loadtests.studies.engine import Lab
from loadtests.studies.ordered.measuring import WARM_REQUESTS, Task, load, start, times

KIND = "witness"
ASKED = ("poorhttp single", "poorhttp threading 8", "nginx", "lighttpd", "Apache event", "webfsd")
LEVELS = (10, 100, 1_000)
RESOLUTION = 1.0
"""Milliseconds: ab writes whole ones."""
GRACE = 5.0
COLUMNS = {"connect": "ctime", "processing": "dtime", "total": "ttime"}
"""What ab calls them."""


def parse(text: str) -> dict[str, list[float]]:
    """The three times from the file that `ab -g` writes. Raises ServerFailure if it is none."""
    table = csv.DictReader(text.splitlines(), delimiter="\t")
    if not set(COLUMNS.values()) <= set(table.fieldnames or ()):
        raise ServerFailure("ab wrote no times")
    rows = list(table)
    try:
        return {part: [float(row[name]) for row in rows] for part, name in COLUMNS.items()}
    except (TypeError, ValueError):
        raise ServerFailure("the times that ab wrote are cut off") from None


def ask(
    port: int, target: str, task: Task, core: int | None
) -> tuple[dict[str, list[float]], float]:
    """Milliseconds of each request that ab says was answered, and its share of a core.

    Raises ServerFailure if it gives up, with what it said.
    """
    with tempfile.TemporaryDirectory(prefix="loadtests-") as folder:
        written = Path(folder) / "times.tsv"
        command = [*pinned(core), programs.path("ab"), "-q", "-g", str(written)]
        command += ["-s", f"{task.longest:.0f}", "-n", str(task.requests), "-c", str(task.at_once)]
        command.append(f"http://127.0.0.1:{port}{target}")
        before, begun = resources.ended_seconds(), time.monotonic()
        longest = task.longest + GRACE
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=longest
            )
        except subprocess.TimeoutExpired:
            raise ServerFailure(f"ab was not done after {longest:.0f} s") from None
        elapsed, spent = time.monotonic() - begun, resources.ended_seconds() - before
        if done.returncode != 0 or not written.exists():
            said = done.stderr.strip().splitlines()[-1:] or ["nothing"]
            raise ServerFailure(f"ab failed; it said: {said[0]}")
        return parse(written.read_text(encoding="ascii")), spent / elapsed


def compare(lab: Lab, one: Server, task: Task) -> dict[str, Any]:
    """Medians in milliseconds of both clients, one after the other, with the same server."""
    with start(lab, one, task) as running:
        load(lab, running.port, one, Task(WARM_REQUESTS, 1, task.longest))
        seen = load(lab, running.port, one, task)
        theirs, busy = ask(running.port, one.target, task, lab.client_core)
    ours = times(seen.trace)
    if not ours["total"] or not theirs["total"]:
        raise ServerFailure("one of the two clients was not answered")
    return {
        "requests": task.requests,
        "at_once": task.at_once,
        "busy": {"fetch": round(seen.load.busy, 3), "ab": round(busy, 3)},
        "fetch_ms": {part: round(statistics.median(each) / 1e3, 3) for part, each in ours.items()},
        "ab_ms": {part: statistics.median(each) for part, each in theirs.items()},
    }


def agree(ours: float, theirs: float) -> bool:
    """Whether two medians differ by no more than ab resolves."""
    return abs(ours - theirs) <= RESOLUTION
