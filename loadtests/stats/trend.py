"""Slope of a line through points by medians (Theil-Sen), robust against outliers."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

CONFIDENCE = 0.95


class Slope(NamedTuple):
    """An estimate, and the interval within which the slope lies with CONFIDENCE."""

    estimate: float
    low: float
    high: float


def theil_sen(points: Sequence[tuple[float, float]]) -> Slope:
    """The median of the slopes between all pairs of points, with the interval of Sen (1968).

    The interval leaves out as many slopes on both sides as Kendall's statistic varies by chance.
    Raises ValueError if there are no two points of different x.
    """
    slopes = sorted(
        (after[1] - before[1]) / (after[0] - before[0])
        for before, after in combinations(sorted(points), 2)
        if after[0] != before[0]
    )
    if not slopes:
        raise ValueError("a slope needs points of different x")
    quantile = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    chance = quantile * math.sqrt(
        max(_variance(len(points)) - _tied(x for x, _ in points) - _tied(y for _, y in points), 0)
    )
    last = len(slopes) - 1
    lowest = max(math.floor((len(slopes) - chance) / 2) - 1, 0)
    highest = min(math.ceil((len(slopes) + chance) / 2), last)
    return Slope(statistics.median(slopes), slopes[lowest], slopes[highest])


def _variance(count: int) -> float:
    return count * (count - 1) * (2 * count + 5) / 18


def _tied(values: Iterable[float]) -> float:
    return sum(_variance(count) for count in Counter(values).values())
