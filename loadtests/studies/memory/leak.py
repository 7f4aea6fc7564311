"""Leak check: whether a server's memory grows with the number of requests."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.reporting.model import Axis, Cell, Column, Line, Lines, Section, Table
from loadtests.servers.application import Application
from loadtests.servers.registry import Server, colour_of
from loadtests.servers.running import Running
from loadtests.stats.results import Results
from loadtests.stats.trend import CONFIDENCE, Slope, theil_sen
from loadtests.store import Record
from loadtests.studies import sample, tables
from loadtests.studies.engine import Lab, Step
from loadtests.studies.memory import mixture

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
        sample.store(
            lab,
            experiment,
            server,
            0,
            scenario=SCENARIO,
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


def section(results: Results) -> list[Section]:
    """The slopes and the curves, if there are any."""
    found = {s["server"]: s for s in results.samples if s["scenario"] == SCENARIO}
    if not found:
        return []
    checks = sorted(map(Check, found.values()), key=lambda check: check.uss.estimate)
    first = next(iter(found.values()))
    asked = ", ".join(f"{count:,} {kind}" for kind, count in first["asked"].items())
    text = [
        f"Requests of all kinds in random order, eight at a time ({asked}), in "
        f"{len(first['stages']) - 1} equal stages after a warm-up of {first['warm_up']:,} that "
        "does not count. After each all clients leave, and the server's memory and descriptors are "
        f"looked at. The slope is that of Theil and Sen, with its {CONFIDENCE:.0%} interval. It "
        f"grows if the whole interval is above {LEAST:,.0f} bytes per 1,000 requests, the smallest "
        f"object of Python for each, and by more than {SLACK >> 20} MiB in all. It does not if the "
        "whole interval is below; else it may, and more requests have to tell. Less is not told "
        "from allocators whose high-water mark still rises a little.",
        *(check.sentence() for check in checks),
    ]
    lines = Lines(
        "memory-leak-lines",
        "Private memory since the warm-up",
        Axis("requests", "thousands", low=0),
        Axis("change of USS", "KiB"),
        [check.line() for check in checks],
        subtitle="after each stage, when all clients have left",
        caption=f"Seed {first['seed']}.",
        marks=True,
    )
    table = Table(
        "memory-leak",
        "Growth per 1,000 requests",
        COLUMNS,
        [check.row() for check in checks],
        tables.ours(found),
        "USS is private memory, PSS divides shared pages; descriptors at the end.",
        COLUMNS[1].name,
    )
    verdicts: dict[str, list[str]] = {}
    for check in checks:
        verdicts.setdefault(check.memory, []).append(check.name)
    said = "; ".join(f"{verdict} with {', '.join(who)}" for verdict, who in verdicts.items())
    return [Section("Does memory grow?", text, [lines, table], f"Memory {said}.")]


COLUMNS = (
    Column("configuration"),
    Column("growth of USS", "bytes"),
    *(Column(f"{end} of its interval", "bytes") for end in ("low end", "high end")),
    Column("growth of PSS", "bytes"),
    *(Column(f"{end} of that", "bytes") for end in ("low end", "high end")),
    Column("USS at the end", "MiB", 1, 1 / 2**20),
    Column("requests"),
    Column("descriptors at the end"),
    Column("memory"),
    Column("descriptors"),
)


class Check:
    """The check of a server."""

    def __init__(self, sample: Record) -> None:
        self.name = str(sample["server"])
        self.points = [Point(**stage) for stage in sample["stages"]]
        self.uss, self.pss = growth(self.points, "uss"), growth(self.points, "pss")
        self.memory = "not told after so short a warm-up"
        if sample["warm_up"] >= WARM_UP:
            self.memory = verdict(self.uss, sample["requests"] - sample["warm_up"])
        grown = growth(self.points, "descriptors").low > 0
        self.descriptors = "grow" if grown else "do not grow"

    def row(self) -> list[Cell]:
        """Slopes, and what is held at the end."""
        last = self.points[-1]
        held = (float(last.uss), float(last.requests), float(last.descriptors))
        return [self.name, *self.uss, *self.pss, *held, self.memory, self.descriptors]

    def sentence(self) -> str:
        """The verdict with its interval."""
        slope = self.uss
        return (
            f"{self.name}: memory {self.memory} ({slope.estimate:,.0f} bytes per 1,000 requests, "
            f"{slope.low:,.0f} to {slope.high:,.0f}), descriptors {self.descriptors}."
        )

    def line(self) -> Line:
        """Kibibytes since the warm-up by thousands of requests."""
        first = self.points[0]
        points = [(one.requests / 1000, (one.uss - first.uss) / 1024) for one in self.points]
        return Line(self.name, colour_of(self.name), points, strong=tables.is_ours(self.name))
