"""One run of a loop: its times in order, and their outliers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

LOOPS = ("1", "2", "3")
"""One page; five pages, one after the other; five at random."""
OUTLIER_TIMES = 10
OUTLIER_US = 1_000
"""An outlier took longer than this, and longer than OUTLIER_TIMES the median of its run."""
OUTLIERS_KEPT = 100
POINTS = 250


class Outlier(NamedTuple):
    """The number of a request, from 1, its microseconds and what it asked for."""

    number: int
    microseconds: float
    target: str


def asked(loop: str, pages: Sequence[str], requests: int, seed: int) -> list[str]:
    """What a loop asks for: so many requests, in the second loop of each page."""
    if loop == "1":
        return [pages[0]] * requests
    if loop == "2":
        return [page for page in pages for _ in range(requests)]
    random = Random(seed)
    return [random.choice(pages) for _ in range(requests)]


def outliers(times: Sequence[float], targets: Sequence[str]) -> list[Outlier]:
    """Requests that stand out, in their order."""
    least = max(OUTLIER_TIMES * statistics.median(times), OUTLIER_US)
    return [
        Outlier(number, time, target)
        for number, (time, target) in enumerate(zip(times, targets, strict=True), 1)
        if time > least
    ]


def curve(
    times: Sequence[float], apart: Sequence[Outlier], points: int = POINTS
) -> list[tuple[int, float]]:
    """Number and microseconds for at most so many points and the outliers.

    A point is the median of some requests that follow each other, outliers left out.
    """
    known = {outlier.number for outlier in apart}
    usual = [(number, time) for number, time in enumerate(times, 1) if number not in known]
    each = -(-len(usual) // points)
    groups = [usual[start : start + each] for start in range(0, len(usual), each or 1)]
    middles = [
        (group[len(group) // 2][0], statistics.median(time for _, time in group))
        for group in groups
    ]
    return sorted([*middles, *((one.number, one.microseconds) for one in apart)])
