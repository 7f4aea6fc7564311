"""Many injectors at once: workers of Locust that begin one after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadtests.clients.load import KINDS
from loadtests.clients.locust import swarm
from loadtests.clients.locust.swarm import Report
from loadtests.measure import histogram

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram

INJECTOR = swarm.FOLDER / "injector.py"
SLICE = 0.1
"""Seconds that a count stands for."""
PATIENCE = 300.0


@dataclass(frozen=True)
class Injector:
    """One of them: when its first request began and its last one ended, in seconds of the run.

    Of the answers that were right `ends` are the seconds of the run at which they ended, in order,
    `times` their response times in microseconds from the request on, `histogram` these as one, and
    `counts` how many ended in each slice of the run.
    """

    began: float
    ended: float
    requests: int
    errors: dict[str, int]
    ends: list[float]
    times: list[float]
    counts: list[int]
    histogram: HdrHistogram


@dataclass(frozen=True)
class Injection:
    """All of them, `seconds` from the turn of the first to the end of the last request.

    `cpu` are seconds of processor time that Locust took, master included.
    """

    injectors: list[Injector]
    seconds: float
    cpu: float


def inject(
    host: str,
    port: int,
    targets: Sequence[str],
    injectors: int,
    requests_each: int,
    stagger_seconds: float = 0,
    seed: int = 0,
    core: int | None = None,
    patience: float = PATIENCE,
) -> Injection:
    """Has injectors make requests of random targets, one after the other, on a kept connection.

    Injector k (from 0) begins k times `stagger_seconds` after the first. Raises LabError if they
    are not through after `patience` seconds.
    """
    plan = {
        "seconds": 0,
        "targets": list(targets),
        "requests": requests_each,
        "stagger": stagger_seconds,
        "seed": seed,
    }
    url = f"http://{host}:{port}"
    outcome = swarm.run([INJECTOR], plan, url, injectors, injectors, core, patience)
    found = [injector(report, outcome.begun) for report in outcome.reports]
    return Injection(found, max((one.ended for one in found), default=0.0), outcome.cpu)


def injector(report: Report, begun: float) -> Injector:
    """Result of one worker; times count from the beginning of the run."""
    ends = [end - begun for end in report.ends]
    right = [row for row, kind in enumerate(report.kinds) if not kind]
    times = [report.times[row] * 1000 for row in right]
    slices = Counter(int(max(ends[row], 0) / SLICE) for row in right)
    starts = [end - time / 1000 for end, time in zip(ends, report.times, strict=True)]
    return Injector(
        began=min(starts, default=0.0),
        ended=max(ends, default=0.0),
        requests=len(right),
        errors=dict(Counter(KINDS[kind] for kind in report.kinds if kind)),
        ends=[ends[row] for row in right],
        times=times,
        counts=[slices[number] for number in range(max(slices, default=-1) + 1)],
        histogram=histogram.record(times),
    )
