"""Slope of a line through points by medians (Theil-Sen), robust against outliers."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
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
    ties = (count for values in zip(*points, strict=True) for count in Counter(values).values())
    chance = quantile * math.sqrt(max(_variance(len(points)) - sum(map(_variance, ties)), 0))
    lowest = max(math.floor((len(slopes) - chance) / 2) - 1, 0)
    highest = min(math.ceil((len(slopes) + chance) / 2), len(slopes) - 1)
    return Slope(statistics.median(slopes), slopes[lowest], slopes[highest])


def _variance(count: int) -> float:
    return count * (count - 1) * (2 * count + 5) / 18
