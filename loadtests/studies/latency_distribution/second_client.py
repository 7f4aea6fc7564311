"""Comparison of our client with Apache Bench, the client of the old study."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtests import programs
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.measure.cpu_affinity import pinned
from loadtests.servers.registry.latency_distribution import ContentServer
from loadtests.studies.engine import Lab
from loadtests.studies.latency_distribution.contents import PAGE
from loadtests.studies.latency_distribution.measuring import WARM_REQUESTS, Task, load, start
from loadtests.studies.latency_distribution.times import PARTS

KIND = "witness"
CONTENT = PAGE
ASKED = ("poorhttp single", "poorhttp threading 8", "nginx", "lighttpd", "Apache event", "webfsd")
LEVELS = (10, 100, 1_000)
RESOLUTION = 1.0
"""Milliseconds: ab writes whole ones."""
GRACE = 5.0
COLUMNS = {"connect": "ctime", "processing": "dtime", "total": "ttime"}
"""What ab calls them."""


@dataclass(frozen=True)
class Seen:
    """Milliseconds of each request that ab says was answered, and its share of a core."""

    times: dict[str, list[float]]
    busy: float


def parse(text: str) -> dict[str, list[float]]:
    """The three times from the file that `ab -g` writes. Raises ServerFailure if it is none."""
    head, *lines = text.splitlines() or [""]
    names = head.split("\t")
    if not set(COLUMNS.values()) <= set(names):
        raise ServerFailure("ab wrote no times")
    rows = [line.split("\t") for line in lines]
    places = {part: names.index(name) for part, name in COLUMNS.items()}
    try:
        return {part: [float(row[place]) for row in rows] for part, place in places.items()}
    except (IndexError, ValueError):
        raise ServerFailure("the times that ab wrote are cut off") from None


def ask(port: int, target: str, task: Task, core: int | None) -> Seen:
    """Makes the requests by ab. Raises ServerFailure if it gives up, with what it said."""
    with tempfile.TemporaryDirectory(prefix="loadtests-") as folder:
        times = Path(folder) / "times.tsv"
        command = [*pinned(core), programs.path("ab"), "-q", "-g", str(times)]
        command += ["-s", f"{task.longest:.0f}", "-n", str(task.requests), "-c", str(task.at_once)]
        before, begun = resources.ended_seconds(), time.monotonic()
        try:
            done = subprocess.run(
                [*command, f"http://127.0.0.1:{port}{target}"],
                capture_output=True,
                text=True,
                check=False,
                timeout=task.longest + GRACE,
            )
        except subprocess.TimeoutExpired:
            raise ServerFailure(f"ab was not done after {task.longest + GRACE:.0f} s") from None
        elapsed, spent = time.monotonic() - begun, resources.ended_seconds() - before
        if done.returncode != 0 or not times.exists():
            said = done.stderr.strip().splitlines()[-1:] or ["nothing"]
            raise ServerFailure(f"ab failed; it said: {said[0]}")
        return Seen(parse(times.read_text(encoding="ascii")), spent / elapsed)


def compare(lab: Lab, one: ContentServer, task: Task) -> dict[str, Any]:
    """Medians in milliseconds of both clients, one after the other, with the same server."""
    with start(lab, one, task) as running:
        load(lab, running.port, one, Task(WARM_REQUESTS, 1, task.longest))
        ours = load(lab, running.port, one, task)
        theirs = ask(running.port, one.target, task, lab.client_core)
    trace = ours.trace
    mine = dict(zip(PARTS, (trace.connect(), trace.processing(), trace.total()), strict=True))
    if not mine["total"] or not theirs.times["total"]:
        raise ServerFailure("one of the two clients was not answered")
    return {
        "requests": task.requests,
        "at_once": task.at_once,
        "busy": {"fetch": round(ours.load.busy, 3), "ab": round(theirs.busy, 3)},
        "fetch_ms": {part: round(statistics.median(mine[part]) / 1e3, 3) for part in PARTS},
        "ab_ms": {part: statistics.median(theirs.times[part]) for part in PARTS},
    }


def agree(ours: float, theirs: float) -> bool:
    """Whether two medians differ by no more than ab resolves."""
    return abs(ours - theirs) <= RESOLUTION


def levels(most: int) -> Sequence[int]:
    """Numbers of clients at once."""
    return [level for level in LEVELS if level <= most]
