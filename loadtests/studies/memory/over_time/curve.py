"""Memory over time, by memory_profiler: idle, ten and a hundred requests at once, idle again."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import NamedTuple, cast

from loadtests.errors import LabError, ServerFailure
from loadtests.measure.repeatedly import Repeatedly
from loadtests.servers.registry import Server
from loadtests.servers.running import Running
from loadtests.studies.bench.scenarios import LIGHT
from loadtests.studies.engine import Lab, Step
from loadtests.studies.memory.over_time import parallel

SCENARIO = "over time"
PHASES = (("idle", 0), ("10 parallel", 10), ("100 parallel", 100), ("idle", 0))
"""What is asked for again and again in each of them."""
POINTS = 200
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


class Recorder(Repeatedly):
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
        lab.store.add(
            "sample",
            experiment=experiment,
            scenario=SCENARIO,
            server=server.name,
            round=0,
            requests=asked,
            begins=begins,
            milliseconds=[round(point.seconds * 1000) for point in points],
            pss=[point.pss for point in points],
        )
        highest = max(point.pss for point in points)
        return f"at most {highest / 2**20:.1f} MiB, {asked:,} requests"

    return Step(server, f"{experiment} over time, {server.name}", action)
