"""Verdict on two servers: estimate and interval of the ratio of a quantity, and what they say.

A round measures A and B twice each, as ABBA or as BAAB, which a coin decides. Its difference is the
mean logarithm of B minus that of A: what drifts evenly within a round cancels. If A and B are the
same, the coin alone decides the sign of each difference, so Wilcoxon's signed-rank distribution is
exact whatever the noise is like. The estimate is that of Hodges and Lehmann, the median of all
means of two differences; the interval is the one that belongs to that distribution.
"""

from __future__ import annotations

import functools
import math
import statistics
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

ERROR = 0.05
"""The probability that any of LOOKS finds a difference where there is none."""
LOOKS = (8, 12, 18, 27, 40)
"""Numbers of rounds after which a run may stop. Each look has its share of ERROR (Bonferroni)."""
ZONE = 0.01
"""Differences up to this share count as none: an interval that reaches in there says nothing."""
LESS, MORE, UNDECIDED = "less", "more", "not to be told"


class Ratio(NamedTuple):
    """B as a multiple of A: an estimate, and the interval that holds it with 1 - `error`."""

    estimate: float
    low: float
    high: float
    rounds: int
    error: float = ERROR

    @property
    def has_ends(self) -> bool:
        """Whether there is an interval: too few rounds have none."""
        return math.isfinite(self.high)

    def verdict(self, zone: float = ZONE) -> str:
        """Whether B takes LESS or MORE than A, or that it is UNDECIDED."""
        if self.high < 1 / (1 + zone):
            return LESS
        return MORE if self.low > 1 + zone else UNDECIDED

    def is_alike(self, zone: float = ZONE) -> bool:
        """Whether the whole interval lies within the zone: more rounds would find no difference."""
        return 1 / (1 + zone) <= self.low and self.high <= 1 + zone


def signed_rank(differences: Sequence[float], error: float) -> tuple[float, float, float]:
    """The Hodges-Lehmann estimate and its exact interval of confidence 1 - `error`.

    Of fewer differences than such an error needs, the interval has no ends.
    """
    count = len(differences)
    means = sorted(
        (differences[i] + differences[j]) / 2 for i in range(count) for j in range(i, count)
    )
    left_out = _left_out(count, error)
    estimate = statistics.median(means) if means else 0.0
    if not left_out:
        return estimate, -math.inf, math.inf
    return estimate, means[left_out - 1], means[-left_out]


@functools.cache
def _left_out(count: int, error: float) -> int:
    """How many of the ordered means are beyond each end of the interval."""
    # How many sets of ranks have each sum: the distribution of the statistic.
    sums = [1]
    for rank in range(1, count + 1):
        grown = sums + [0] * rank
        for place, ways in enumerate(sums):
            grown[place + rank] += ways
        sums = grown
    return bisect_right(list(accumulate(sums)), error / 2 * 2**count)


def of_rounds(differences: Sequence[float], looks: int = 1) -> Ratio:
    """The ratio of rounds whose logarithms differ so, if a run looks at it so many times."""
    estimate, low, high = signed_rank(differences, ERROR / looks)
    high = math.exp(high) if high < 700 else math.inf
    return Ratio(math.exp(estimate), math.exp(low), high, len(differences), ERROR / looks)


def of_runs(
    before: Sequence[float], after: Sequence[float], others: Sequence[float], tests: int = 1
) -> Ratio:
    """The ratio of runs that were measured apart, as logarithms of the median of each run.

    What runs differ by without a cause is estimated: from the runs themselves, of which there must
    be two on both sides (Welch's interval), or else from `others`, differences between both runs of
    at least three servers that should not have changed. `tests` verdicts share the error.
    """
    # Only now: SciPy is slow to load.
    from scipy.special import stdtrit

    error = ERROR / tests
    estimate = statistics.fmean(after) - statistics.fmean(before)
    rounds = min(len(before), len(after))
    if rounds > 1:
        parts = [statistics.variance(one) / len(one) for one in (before, after)]
        freedoms = [len(one) - 1 for one in (before, after)]
        below = sum(part**2 / freedom for part, freedom in zip(parts, freedoms, strict=True))
        freedom, deviation = (sum(parts) ** 2 / below if below else 1.0), math.sqrt(sum(parts))
    elif len(others) > 2:
        # A machine that has become slower has for all of them.
        estimate -= statistics.fmean(others)
        freedom = len(others) - 1.0
        deviation = statistics.stdev(others) * math.sqrt(1 + 1 / len(others))
    else:
        return Ratio(math.exp(estimate), 0.0, math.inf, rounds, error)
    reach = float(stdtrit(freedom, 1 - error / 2)) * deviation
    low, high = (math.exp(min(estimate + sign * reach, 700)) for sign in (-1, 1))
    return Ratio(math.exp(estimate), low, high, rounds, error)
