"""Memory over time, by memory_profiler: idle, ten and a hundred requests at once, idle again."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import NamedTuple, cast

from loadtests.errors import LabError, ServerFailure
from loadtests.measure.repeatedly import Repeatedly
from loadtests.reporting.model import Axis, Line, Lines, Panels, Section
from loadtests.servers.registry import Server, colour_of
from loadtests.servers.running import Running
from loadtests.stats.results import Results
from loadtests.studies import sample, tables
from loadtests.studies.bench.scenarios import LIGHT
from loadtests.studies.engine import Lab, Step
from loadtests.studies.memory import parallel
from loadtests.studies.memory.moments import IDLE

SCENARIO = "over time"
PHASES = (("idle", 0), ("10 parallel", 10), ("100 parallel", 100), ("idle", 0))
"""What is asked for again and again in each of them."""
POINTS = 200
ALONE = 2
"""Processes of a server with one worker: the worker and its supervisor."""
SHORTEST = 0.02
"""Seconds between two looks."""


class Point(NamedTuple):
    """Memory of a server so many seconds after the beginning."""

    seconds: float
    pss: int


def profiler() -> Callable[[int], float]:
    """A look at a process and its children: PSS in bytes.

    Raises LabError if memory_profiler is not installed.
    """
    try:
        memory_usage = importlib.import_module("memory_profiler").memory_usage
    except ModuleNotFoundError as error:
        raise LabError(f"{error.name} is not installed (extra lab)") from None

    def look(process: int) -> float:
        [mebibytes] = memory_usage(
            process, interval=0, timeout=None, include_children=True, backend="psutil_pss"
        )
        return cast(float, mebibytes) * 2**20

    return look


class Recorder(Repeatedly[None]):
    """Looks at a process and its children until the block ends."""

    def __init__(self, process: int, every: float) -> None:
        super().__init__(self._note, every)
        self.points: list[Point] = []
        self._process = process
        self._look = profiler()
        self._started = time.monotonic()

    def _note(self) -> None:
        try:
            used = self._look(self._process)
        except Exception as error:  # Whatever the library raises, if the process has gone.
            why = str(error) or type(error).__name__
            raise ServerFailure(f"memory_profiler: {why}") from None
        self.points.append(Point(time.monotonic() - self._started, round(used)))


def thinned(points: list[Point], count: int) -> list[Point]:
    """At most so many of them, evenly, the last one included."""
    if len(points) <= count:
        return points
    return [points[round(place * (len(points) - 1) / (count - 1))] for place in range(count)]


def step(lab: Lab, experiment: str, server: Server, seconds: float) -> Step:
    """Records a server over all phases, each of so many seconds."""

    def action() -> str:
        begins = []
        asked = 0
        with (
            Running(server, LIGHT, core=lab.server_core) as running,
            Recorder(running.main, max(len(PHASES) * seconds / POINTS, SHORTEST)) as recorder,
        ):
            started = time.monotonic()
            for number, (_, count) in enumerate(PHASES, 1):
                begins.append(round(time.monotonic() - started, 3))
                end = started + number * seconds
                while count and time.monotonic() < end:
                    parallel.ask(running, count)
                    asked += count
                time.sleep(max(end - time.monotonic(), 0))
        points = thinned(recorder.points, POINTS)
        sample.store(
            lab,
            experiment,
            server,
            0,
            scenario=SCENARIO,
            requests=asked,
            begins=begins,
            milliseconds=[round(point.seconds * 1000) for point in points],
            pss=[point.pss for point in points],
        )
        highest = max(point.pss for point in points)
        return f"at most {highest / 2**20:.1f} MiB, {asked:,} requests"

    return Step(server, f"{experiment} over time, {server.name}", action)


def section(results: Results) -> list[Section]:
    """The curves, if there are any."""
    found = {s["server"]: s for s in results.samples if s["scenario"] == SCENARIO}
    if not found:
        return []
    groups: dict[str, list[Line]] = {}
    for name, one in found.items():
        points = [
            (milliseconds / 1000, pss / 2**20)
            for milliseconds, pss in zip(one["milliseconds"], one["pss"], strict=True)
        ]
        drawn = Line(name, colour_of(name), points, strong=tables.is_ours(name))
        groups.setdefault(_group(results, name), []).append(drawn)
    seconds = max(one["begins"][-1] for one in found.values()) / (len(PHASES) - 1)
    words = ", ".join(name for name, _ in PHASES)
    panels = [
        Lines(
            f"memory-time-{number}",
            name,
            Axis("time", "s", low=0),
            Axis("PSS", "MiB", low=0),
            lines,
        )
        for number, (name, lines) in enumerate(groups.items(), 1)
    ]
    figure = Panels(
        "memory-time",
        "Memory over time",
        panels,
        subtitle=f"{words}: {seconds:.2g} s each",
        caption="A single run. PSS divides shared pages among all processes that map them.",
    )
    text = (
        "PSS of all processes as memory_profiler records it, from the first answer on, in four "
        f"phases of {seconds:.2g} s: {words}. Within a phase so many parallel requests follow each "
        "other without a pause."
    )
    highest = tables.spreads(found.values(), tables.each(lambda one: max(one["pss"]) / 2**20))
    return [
        Section("Memory over time", [text], [figure], tables.answer("Most PSS", highest, "MiB"))
    ]


def _group(results: Results, name: str) -> str:
    if not name.startswith("poorhttp "):
        return "Others"
    processes = results.median(IDLE, name, "processes")
    several = processes is not None and processes.median > ALONE
    return "Ours, several workers" if several else "Ours, one worker"
