"""Report of the leak check."""

from __future__ import annotations

from typing import Any

from loadtests.reporting.model import Axis, Cell, Column, Line, Lines, Section, Table
from loadtests.stats.results import Results
from loadtests.stats.trend import CONFIDENCE
from loadtests.studies.memory.leaks.leak import (
    LEAST,
    SCENARIO,
    SLACK,
    WARM_UP,
    Point,
    growth,
    verdict,
)
from loadtests.studies.memory.order import colour, in_order, ours

COLUMNS = (
    Column("configuration"),
    Column("requests"),
    Column("USS", "MiB", 1, 1 / 2**20),
    Column("USS slope", "bytes"),
    Column("low", "bytes"),
    Column("high", "bytes"),
    Column("PSS slope", "bytes"),
    Column("low", "bytes"),
    Column("high", "bytes"),
    Column("descriptors"),
    Column("memory"),
    Column("descriptors"),
)


def sections(results: Results) -> list[Section]:
    """The slopes and the curves, if there are any."""
    found = {s["server"]: s for s in results.samples if s["scenario"] == SCENARIO}
    if not found:
        return []
    samples = [found[name] for name in in_order(found)]
    rows = [_row(sample) for sample in samples]
    stages = len(samples[0]["stages"]) - 1
    warm_up = samples[0]["warm_up"]
    asked = ", ".join(f"{count:,} {kind}" for kind, count in samples[0]["asked"].items())
    return [
        Section(
            "Does memory grow?",
            [
                f"Requests of all kinds in random order, eight at a time ({asked}), in {stages} "
                f"equal stages after a warm-up of {warm_up:,} that does not count. After each "
                "all clients leave, and the server's memory and descriptors are looked at. The "
                f"slope is that of Theil and Sen, with its {CONFIDENCE:.0%} interval. It grows if "
                f"the whole interval is above {LEAST:,.0f} bytes per 1,000 requests, the smallest "
                f"object of Python for each, and by more than {SLACK >> 20} MiB in all. It does "
                "not if the whole interval is below; else it may, and more requests have to tell. "
                "Less is not told from allocators whose high-water mark still rises a little.",
                *(_sentence(sample) for sample in samples),
            ],
            [
                Table(
                    "memory-leak",
                    "Growth per 1,000 requests",
                    COLUMNS,
                    rows,
                    frozenset(name for name in found if ours(name)),
                    "USS, and descriptors at the end.",
                ),
                Lines(
                    "memory-leak-lines",
                    "Private memory since the warm-up",
                    Axis("requests", "thousands", low=0),
                    Axis("change of USS", "KiB"),
                    [_line(sample) for sample in samples],
                    subtitle="after each stage, when all clients have left",
                    caption=f"Seed {samples[0]['seed']}.",
                    marks=True,
                ),
            ],
        )
    ]


def _points(sample: dict[str, Any]) -> list[Point]:
    return [Point(**stage) for stage in sample["stages"]]


def _row(sample: dict[str, Any]) -> list[Cell]:
    points = _points(sample)
    uss, pss = growth(points, "uss"), growth(points, "pss")
    last = points[-1]
    return [
        str(sample["server"]),
        float(last.requests),
        float(last.uss),
        *uss,
        *pss,
        float(last.descriptors),
        _verdict(sample),
        _descriptors(points),
    ]


def _verdict(sample: dict[str, Any]) -> str:
    if sample["warm_up"] < WARM_UP:
        return "not told after so short a warm-up"
    return verdict(growth(_points(sample), "uss"), sample["requests"] - sample["warm_up"])


def _descriptors(points: list[Point]) -> str:
    return "grow" if growth(points, "descriptors").low > 0 else "do not grow"


def _sentence(sample: dict[str, Any]) -> str:
    points = _points(sample)
    slope = growth(points, "uss")
    return (
        f"{sample['server']}: memory {_verdict(sample)} ({slope.estimate:,.0f} bytes per 1,000 "
        f"requests, {slope.low:,.0f} to {slope.high:,.0f}), descriptors {_descriptors(points)}."
    )


def _line(sample: dict[str, Any]) -> Line:
    name = str(sample["server"])
    points = _points(sample)
    return Line(
        name,
        colour(name),
        [(point.requests / 1000, (point.uss - points[0].uss) / 1024) for point in points],
        strong=ours(name),
    )
