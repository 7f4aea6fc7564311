"""Leak check: whether a server's memory grows with the number of requests."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.servers.application import Application
from loadtests.servers.registry import Server
from loadtests.servers.running import Running
from loadtests.stats.trend import Slope, theil_sen
from loadtests.studies.engine import Lab, Step
from loadtests.studies.memory.leaks import mixture

SCENARIO = "leak check"
VARIED = Application("loadtests/apps", "varied", dated=True)
SEED = 2010
SETTLE_SECONDS = 3.0
"""In which a server notices that its clients have gone."""
STEADY_SECONDS = 0.1
"""In which its descriptors then do not change."""
WARM_UP = 20_000
"""Requests after which all threads have had about the largest body that they will get."""
LEAST = 16_000.0
"""Bytes per 1,000 requests from which on it is a leak: Python's smallest object for each request.

Less than that comes of allocators whose high-water mark still rises a little.
"""
SLACK = 1 << 20
"""Bytes that allocators may come to hold besides: few requests only show a leak above that."""


@dataclass(frozen=True)
class Stages:
    """`count` equal ones after a warm-up, which does not count."""

    warm_up: int
    count: int
    requests: int

    @property
    def total(self) -> int:
        """Requests of the warm-up and of all stages."""
        return self.warm_up + self.count * self.requests

    def ends(self) -> list[int]:
        """After how many requests the warm-up and each stage end."""
        return [self.warm_up + self.requests * number for number in range(self.count + 1)]


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
            warm_up=stages.warm_up,
            asked=dict(asked),
            stages=[asdict(point) for point in points],
        )
        slope = growth(points, "uss")
        return f"{slope.estimate:,.0f} bytes per 1,000 requests"

    return Step(server, f"{experiment} leak check, {server.name}", action)


def endure(
    server: Server, application: Application, stages: Stages, core: int | None
) -> tuple[list[Point], Counter[str]]:
    """What is held after the warm-up and each stage, and how many requests there were of a kind.

    Raises ServerFailure if an answer is wrong or missing, or if a process of the server ends.
    """
    requests = mixture.drawn(SEED, stages.total)
    points = []
    asked: Counter[str] = Counter()
    with Running(server, application, target="/light", core=core) as running:
        before: list[int] = []
        for end in stages.ends():
            with mixture.Client(running.port) as client:
                asked += client.ask(requests[asked.total() : end])
            _settle(running)
            now = running.processes()
            if before and now != before:
                raise ServerFailure(
                    f"its processes are not the same after {asked.total():,} requests: "
                    f"{running.last_words()}"
                )
            before = now
            used = resources.memory(now)
            points.append(Point(asked.total(), used.pss, used.uss, resources.descriptors(now)))
    return points, asked


def _settle(running: Running) -> None:
    """Waits until a server has closed the connections of clients that have left."""
    deadline = time.monotonic() + SETTLE_SECONDS
    before = -1
    while (now := resources.descriptors(running.processes())) != before:
        if time.monotonic() > deadline:
            return
        before = now
        time.sleep(STEADY_SECONDS)


def growth(points: Sequence[Point], of: str) -> Slope:
    """Of a field of the points, per 1,000 requests."""
    return theil_sen([(point.requests / 1000, getattr(point, of)) for point in points])


def verdict(slope: Slope, requests: int) -> str:
    """What the interval says of the memory after so many requests that count."""
    if slope.high <= LEAST:
        return "does not grow"
    least = max(LEAST, SLACK / requests * 1000)
    return "grows" if slope.low > least else "may grow"
