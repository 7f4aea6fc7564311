"""Report of memory over time."""

from __future__ import annotations

from typing import Any

from loadtests.reporting.model import Axis, Line, Lines, Panels, Section
from loadtests.stats.results import Results
from loadtests.studies.memory.order import colour, in_order, ours
from loadtests.studies.memory.over_time.curve import PHASES, SCENARIO
from loadtests.studies.memory.over_time.moments import IDLE

ALONE = 2
"""Processes of a server with one worker: the worker and its supervisor."""


def sections(results: Results) -> list[Section]:
    """The curves, if there are any."""
    found = {s["server"]: s for s in results.samples if s["scenario"] == SCENARIO}
    if not found:
        return []
    samples = [found[name] for name in in_order(found)]
    groups: dict[str, list[dict[str, Any]]] = {}
    for sample in samples:
        groups.setdefault(_group(results, sample["server"]), []).append(sample)
    seconds = max(sample["begins"][-1] for sample in samples) / (len(PHASES) - 1)
    words = ", ".join(name for name, _ in PHASES)
    panels = [
        Lines(
            f"memory-time-{number}",
            name,
            Axis("time", "s", low=0),
            Axis("PSS", "MiB", low=0),
            [_line(sample) for sample in group],
        )
        for number, (name, group) in enumerate(groups.items(), 1)
    ]
    return [
        Section(
            "Memory over time",
            [
                "PSS of all processes as memory_profiler records it, from the first answer on, in "
                f"four phases of {seconds:.2g} s: {words}. Within a phase so many parallel "
                "requests follow each other without a pause."
            ],
            [
                Panels(
                    "memory-time",
                    "Memory over time",
                    panels,
                    subtitle=f"{words}: {seconds:.2g} s each",
                    caption="A single run. PSS divides shared pages among all who map them.",
                )
            ],
        )
    ]


def _group(results: Results, name: str) -> str:
    if not ours(name):
        return "Others"
    processes = results.median(IDLE, name, "processes")
    several = processes is not None and processes.median > ALONE
    return "Ours, several workers" if several else "Ours, one worker"


def _line(sample: dict[str, Any]) -> Line:
    name = str(sample["server"])
    points = [
        (milliseconds / 1000, pss / 2**20)
        for milliseconds, pss in zip(sample["milliseconds"], sample["pss"], strict=True)
    ]
    return Line(name, colour(name), points, strong=ours(name))
