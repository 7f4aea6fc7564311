"""Slope of a line through points by medians (Theil-Sen), robust against outliers."""

from __future__ import annotations

from collections.abc import Sequence
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
    # Only now: SciPy is slow to load, and a run does without it.
    from scipy.stats import theilslopes

    x, y = zip(*points, strict=True) if points else ((), ())
    if len(set(x)) < 2:
        raise ValueError("a slope needs points of different x")
    found = theilslopes(y, x, CONFIDENCE)
    return Slope(float(found.slope), float(found.low_slope), float(found.high_slope))
