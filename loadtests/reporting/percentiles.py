"""Percentile plots as of HdrHistogram: time by percentile, each nine as wide as the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from loadtests.measure import histogram
from loadtests.reporting.model import Axis, Line, Lines

STEP = 1.1


def points(times: Any, longest: float) -> Sequence[tuple[float, float]]:
    """Milliseconds by one of how many requests is slower; `longest` in microseconds."""
    slower, of = [], 1.0
    while of < times.get_total_count() * STEP:
        slower.append(of)
        of *= STEP
    found = histogram.quantiles(times, [1 - 1 / of for of in slower], longest)
    return [(of, time / 1000) for of, time in zip(slower, found, strict=True)] or [
        (1.0, longest / 1000)
    ]


def plot(name: str, lines: Iterable[Line]) -> Lines:
    x, y = Axis("percentile", log=True, low=1, nines=True), Axis("time", "ms", log=True)
    caption = "At 99 % is the time within which 99 of 100 requests are answered."
    return Lines(name, "Times by percentile", x, y, list(lines), caption=caption, steps=True)
