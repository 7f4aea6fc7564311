"""Slope of a line through points by medians (Theil-Sen), robust against outliers."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

CONFIDENCE = 0.95


class Slope(NamedTuple):
    """An estimate, and the interval within which the slope lies with CONFIDENCE."""

    estimate: float
    low: float
    high: float


def theil_sen(points: Sequence[tuple[float, float]]) -> Slope:
    """The median of the slopes between all pairs of points, with the interval of Sen (1968).

    Raises ValueError if there are no two points of different x.
    """
    pairs = product(points, points)
    slopes = sorted((d - b) / (c - a) for (a, b), (c, d) in pairs if c > a)
    if not slopes:
        raise ValueError("a slope needs points of different x")
    # Equation 2.6 of Sen: the variance of how many more slopes are above than below the true one.
    variance = _term(len(points))
    for values in zip(*points, strict=True):
        variance -= sum(map(_term, Counter(values).values()))
    chance = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(max(variance, 0))
    low = max(round((len(slopes) - chance) / 2) - 1, 0)
    high = min(round((len(slopes) + chance) / 2), len(slopes) - 1)
    return Slope(statistics.median(slopes), slopes[low], slopes[high])


def _term(count: int) -> float:
    """What so many points, or so many equal values, count in the variance."""
    return count * (count - 1) * (2 * count + 5) / 18
