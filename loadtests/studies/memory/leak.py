"""Whether a server's memory grows with the number of requests."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from loadtests import measure
from loadtests.application import Application
from loadtests.bench import Lab, Step
from loadtests.errors import ServerFailure
from loadtests.process import Running
from loadtests.servers import Server
from loadtests.studies.memory import mixture
from loadtests.studies.memory.trend import Slope, theil_sen

SCENARIO = "leak check"
VARIED = Application("loadtests/apps", "varied", dated=True)
SEED = 2010
SETTLE_SECONDS = 3.0
"""In which a server notices that its clients have gone."""
STEADY_SECONDS = 0.1
"""In which its descriptors then do not change."""
LEAST = 16_000.0
"""Bytes per 1,000 requests from which on it is a leak: Python's smallest object for each request.

Less than that comes of allocators whose high-water mark still rises a little.
"""


@dataclass(frozen=True)
class Stages:
    """`count` equal ones; the first is the warm-up, which does not count."""

    count: int
    requests: int

    @property
    def total(self) -> int:
        """Requests of all stages."""
        return self.count * self.requests


@dataclass(frozen=True)
class Point:
    """What a server holds after so many requests."""

    requests: int
    pss: int
    uss: int
    descriptors: int


def step(
    lab: Lab, experiment: str, server: Server, stages: Stages, application: Application = VARIED
) -> Step:
    """Looks at a server after each stage, when all clients have left."""

    def action() -> str:
        points, asked = endure(server, application, stages, lab.server_core)
        lab.store.add(
            "sample",
            experiment=experiment,
            scenario=SCENARIO,
            server=server.name,
            round=0,
            seed=SEED,
            requests=stages.total,
            asked=dict(asked),
            stages=[asdict(point) for point in points],
        )
        slope = growth(points, "uss")
        return f"{slope.estimate:,.0f} bytes per 1,000 requests: {verdict(slope)}"

    return Step(server, f"{experiment} leak check, {server.name}", action)


def endure(
    server: Server, application: Application, stages: Stages, core: int | None
) -> tuple[list[Point], Counter[str]]:
    """What is held after each stage, and how many requests there were of each kind.

    Raises ServerFailure if an answer is wrong or missing, or if a process of the server ends.
    """
    requests = mixture.drawn(SEED, stages.total)
    points = []
    asked: Counter[str] = Counter()
    with Running(server, application, target="/light", core=core) as running:
        before: list[int] = []
        for first in range(0, stages.total, stages.requests):
            with mixture.Client(running.port) as client:
                asked += client.ask(requests[first : first + stages.requests])
            _settle(running)
            now = running.processes()
            if before and now != before:
                raise ServerFailure(
                    f"its processes are not the same after {asked.total():,} requests: "
                    f"{running.last_words()}"
                )
            before = now
            used = measure.memory(now)
            points.append(Point(asked.total(), used.pss, used.uss, measure.descriptors(now)))
    return points, asked


def _settle(running: Running) -> None:
    """Waits until a server has closed the connections of clients that have left."""
    deadline = time.monotonic() + SETTLE_SECONDS
    before = -1
    while (now := measure.descriptors(running.processes())) != before:
        if time.monotonic() > deadline:
            return
        before = now
        time.sleep(STEADY_SECONDS)


def growth(points: Sequence[Point], of: str) -> Slope:
    """Of a field of the points, per 1,000 requests; the warm-up is left out."""
    return theil_sen([(point.requests / 1000, getattr(point, of)) for point in points[1:]])


def verdict(slope: Slope) -> str:
    """What the interval says of the memory."""
    if slope.low > LEAST:
        return "grows"
    if slope.high > LEAST:
        return "cannot be told"
    return "does not grow"
