"""The combined result of injectors: phases of activity, requests over time, totals.

Times are seconds from the beginning of the first one.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple


@dataclass(frozen=True)
class Injector:
    """From when to when it was active; for each of its requests, when it ended and how long it
    took (microseconds), in order of the ends."""

    began: float
    ended: float
    ends: Sequence[float]
    times: Sequence[float]


class Injected(NamedTuple):
    """What they did, and how many cores they took while any of them was active."""

    injectors: list[Injector]
    busy: float

    @property
    def seconds(self) -> float:
        """From the first to the last of them."""
        return max(one.ended for one in self.injectors)

    @property
    def requests(self) -> int:
        """All together."""
        return sum(len(one.ends) for one in self.injectors)


class Phase(NamedTuple):
    """A time in which the same injectors were active. Microseconds are None without a request."""

    injectors: tuple[int, ...]
    seconds: float
    requests: int
    low: float | None
    high: float | None


def phases(injectors: Sequence[Injector]) -> list[Phase]:
    """The phases in their order; a request belongs to the one in which it ended."""
    bounds = sorted({time for one in injectors for time in (one.began, one.ended)})
    found = []
    for begin, end in pairwise(bounds):
        active = tuple(
            number
            for number, one in enumerate(injectors, 1)
            if one.began <= begin and one.ended >= end
        )
        # What ends on a bound belongs to the phase before it.
        times = [
            time
            for one in injectors
            for at, time in zip(one.ends, one.times, strict=True)
            if begin < at <= end
        ]
        if active or times:
            least, most = (min(times), max(times)) if times else (None, None)
            found.append(Phase(active, end - begin, len(times), least, most))
    return found


def counts(one: Injector, bins: int, length: float) -> list[int]:
    """How many requests ended in each of so many equal parts of the whole length."""
    found = [0] * bins
    for at in one.ends:
        found[min(int(at / length * bins), bins - 1)] += 1
    return found


class Fit(NamedTuple):
    """A line through points by least squares, and the share of the variation it explains."""

    slope: float
    offset: float
    explained: float


def fit(points: Sequence[tuple[float, float]]) -> Fit | None:
    """The line; None for less than three points, or if all are at one place."""
    if len(points) < 3:
        return None
    x, y = zip(*points, strict=True)
    try:
        slope, offset = statistics.linear_regression(x, y)
        return Fit(slope, offset, statistics.correlation(x, y) ** 2)
    except statistics.StatisticsError:
        return None
