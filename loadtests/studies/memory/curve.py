"""Memory over time, by memory_profiler: idle, ten and a hundred requests at once, idle again."""

from __future__ import annotations

import time
from collections.abc import Sequence

from loadtests.errors import LabError, ServerFailure
from loadtests.measure.repeatedly import Repeatedly
from loadtests.reporting.model import MIB, Axis, Panels, Section
from loadtests.stats.results import Results
from loadtests.studies import tables
from loadtests.studies.bench.scenarios import LIGHT
from loadtests.studies.engine import Trial
from loadtests.studies.memory.moments import IDLE, ask

SCENARIO = "over time"
PHASES = (("idle", 0), ("10 parallel", 10), ("100 parallel", 100), ("idle", 0))
"""What is asked for again and again in each of them."""
POINTS = 200
ALONE = 2
"""Processes of a server with one worker: the worker and its supervisor."""
SHORTEST = 0.02
"""Seconds between two looks."""


def recorder(process: int, every: float) -> Repeatedly[tuple[float, int]]:
    """Looks at the PSS of a process and its children, in bytes, at so many seconds from now on.

    Raises LabError if memory_profiler is not installed.
    """
    try:
        # Only now: it is an extra.
        from memory_profiler import memory_usage
    except ModuleNotFoundError as error:
        raise LabError(f"{error.name} is not installed (extra lab)") from None
    how = {"interval": 0, "timeout": None, "include_children": True, "backend": "psutil_pss"}
    started = time.monotonic()

    def look() -> tuple[float, int]:
        try:
            [mebibytes] = memory_usage(process, **how)
        except Exception as error:  # Whatever the library raises, if the process has gone.
            why = str(error) or type(error).__name__
            raise ServerFailure(f"memory_profiler: {why}") from None
        return time.monotonic() - started, round(mebibytes * 2**20)

    return Repeatedly(look, every)


def thinned(looks: Sequence[tuple[float, int]], most: int = POINTS) -> list[tuple[float, int]]:
    """So many of them at most, evenly from the first to the last."""
    if len(looks) <= most:
        return list(looks)
    return [looks[round(place * (len(looks) - 1) / (most - 1))] for place in range(most)]


def take(trial: Trial, seconds: float) -> str:
    """Records a server over all phases, each of so many seconds."""
    begins = []
    asked = 0
    with (
        trial.running(LIGHT) as running,
        recorder(running.main, max(len(PHASES) * seconds / POINTS, SHORTEST)) as recording,
    ):
        started = time.monotonic()
        for number, (_, count) in enumerate(PHASES, 1):
            begins.append(round(time.monotonic() - started, 3))
            end = started + number * seconds
            while count and time.monotonic() < end:
                ask(running, count)
                asked += count
            time.sleep(max(end - time.monotonic(), 0))
            # On a busy machine a look may take longer than a phase.
            recording.wait_for(number + 1)
    points = thinned(recording.looks)
    trial.sample(
        scenario=SCENARIO,
        requests=asked,
        begins=begins,
        milliseconds=[round(at * 1000) for at, _ in points],
        pss=[pss for _, pss in points],
    )
    return f"at most {max(pss for _, pss in points) * MIB:.1f} MiB, {asked:,} requests"


def section(results: Results) -> Section:
    found = {s["server"]: s for s in results.samples if s["scenario"] == SCENARIO}
    groups: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for name, one in found.items():
        seconds = (at / 1000 for at in one["milliseconds"])
        groups.setdefault(_group(results, name), {})[name] = [
            *zip(seconds, one["pss"], strict=True)
        ]
    each = max(one["begins"][-1] for one in found.values()) / (len(PHASES) - 1)
    words = ", ".join(name for name, _ in PHASES)
    x, y = Axis("time", "s", low=0), Axis("PSS", "MiB", low=0)
    figure = Panels(
        "memory-time",
        "Memory over time",
        [
            tables.lines(f"memory-time-{number}", name, x, y, servers, MIB)
            for number, (name, servers) in enumerate(groups.items(), 1)
        ],
        subtitle=f"{words}: {each:.2g} s each",
        caption="A single run. PSS divides shared pages among all processes that map them.",
    )
    text = (
        "PSS of all processes as memory_profiler records it, from the first answer on, in four "
        f"phases of {each:.2g} s: {words}. Within a phase, that many requests run in parallel, "
        "without a pause."
    )
    highest = tables.spreads(found.values(), tables.each(lambda one: max(one["pss"])), MIB)
    said = tables.answer("Most PSS", highest, "MiB")
    return Section("Memory over time", [text], [figure], said)


def _group(results: Results, name: str) -> str:
    if not name.startswith("poorhttp "):
        return "Others"
    processes = results.median(IDLE, name, "processes")
    several = processes is not None and processes.median > ALONE
    return "Ours, several workers" if several else "Ours, one worker"
