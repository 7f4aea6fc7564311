"""Two-factor analysis of variance: the share of the variation that each factor explains.

After R. Jain, The Art of Computer Systems Performance Analysis, chapters 21 and 22.

An observation is the mean of all, plus the effect of its level of A, plus that of its level of B,
plus their interaction, plus an error. Only replication tells interaction and error apart.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCES = (0.90, 0.95)
DRAWS = 1_000
SEED = 21
"""Of the simulated experiments behind the intervals of shares."""


@dataclass(frozen=True)
class Source:
    """A line of the table. `f` and `probability` are None where nothing is left to compare with.

    `probability` is that of so great an F if this source had no effect.
    """

    name: str
    squares: float
    share: float
    freedom: int
    mean_square: float | None
    f: float | None = None
    probability: float | None = None


@dataclass(frozen=True)
class Interval:
    """An effect, and where it lies with some confidence; no bounds without an error to go by."""

    value: float
    low: float | None
    high: float | None

    @property
    def significant(self) -> bool:
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


class Analysis:
    """`replications` of each of the combinations of the levels of A and B.

    It is made of the means of combinations; `errors` is the sum of squares within these.
    `interactions` has a row for each level of A; without replication they are the residuals, count
    as errors, and `ssab` is 0. `sst` is the total variation, `deviation` that of the errors.
    """

    def __init__(self, means: ArrayLike, replications: int, errors: float = 0.0) -> None:
        table = np.asarray(means, float)
        a, b = table.shape
        self.replications, self.replicated = replications, replications > 1
        self.mean = float(table.mean())
        of_a, of_b = table.mean(1) - self.mean, table.mean(0) - self.mean
        both = table - self.mean - of_a[:, None] - of_b
        self.a_effects, self.b_effects, self.interactions = of_a, of_b, both
        self.ssa, self.ssb = b * replications * _squares(of_a), a * replications * _squares(of_b)
        rest = replications * _squares(both)
        self.ssab, self.sse = (rest, errors) if self.replicated else (0.0, rest)
        self.sst = self.ssa + self.ssb + self.ssab + self.sse
        self.error_freedom = a * b * (replications - 1) if self.replicated else (a - 1) * (b - 1)
        self.deviation = math.sqrt(self.sse / self.error_freedom) if self.error_freedom else None

    def sources(self) -> list[Source]:
        """A, B, their interaction (if it can be told) and the errors."""
        a, b = len(self.a_effects) - 1, len(self.b_effects) - 1
        rows = [("A", self.ssa, a), ("B", self.ssb, b), ("AB", self.ssab, a * b)]
        rows = [*rows[: 2 + self.replicated], ("error", self.sse, self.error_freedom)]
        return [self._source(*row) for row in rows]

    def _source(self, name: str, squares: float, freedom: int) -> Source:
        square = squares / freedom if freedom else None
        share = squares / self.sst if self.sst else 0.0
        if name == "error" or square is None or not self.sse or not self.error_freedom:
            return Source(name, squares, share, freedom, square)
        f = square / (self.sse / self.error_freedom)
        # Only now: SciPy is slow to load, and a run does without it.
        from scipy.special import fdtrc

        probability = float(fdtrc(freedom, self.error_freedom, f))
        return Source(name, squares, share, freedom, square, f, probability)

    def interval(self, value: float, parts: int, confidence: float) -> Interval:
        """Of a mean or an effect: `parts` of the variance of the abr observations are its own.

        It has 1 part if it is the mean of all, else its degrees of freedom (Jain, table 22.4).
        """
        if self.deviation is None:
            return Interval(value, None, None)
        count = len(self.a_effects) * len(self.b_effects) * self.replications
        from scipy.special import stdtrit

        reach = float(stdtrit(self.error_freedom, (1 + confidence) / 2))
        reach *= self.deviation * math.sqrt(parts / count)
        return Interval(value, value - reach, value + reach)

    def share_intervals(self, confidence: float) -> dict[str, Interval]:
        """The share of each source in the variation, by name.

        The experiment is repeated with other errors of the same variance about what it found. What
        these repetitions have in the middle is laid upon the share that was found, since errors
        added to errors favour the interaction. Without replication there are no bounds.
        """
        found = {source.name: source.share for source in self.sources()}
        if not self.replicated or not self.sst:
            return {name: Interval(share, None, None) for name, share in found.items()}
        drawn = self._drawn_shares()
        intervals = {}
        for name, share in found.items():
            values = sorted(shares[name] for shares in drawn)
            shift = share - statistics.median(values)
            beyond = round((1 - confidence) / 2 * (len(values) - 1))
            low, high = values[beyond] + shift, values[-1 - beyond] + shift
            intervals[name] = Interval(share, max(low, 0.0), min(high, 1.0))
        return intervals

    def _drawn_shares(self) -> list[dict[str, float]]:
        random = Random(SEED)
        assert self.deviation is not None
        spread = self.deviation / math.sqrt(self.replications)
        fitted = self.mean + self.a_effects[:, None] + self.b_effects + self.interactions
        drawn = []
        for _ in range(DRAWS):
            noise = np.reshape([random.gauss(0, spread) for _ in fitted.flat], fitted.shape)
            # The squares of errors are distributed as chi squared, a gamma distribution.
            errors = self.deviation**2 * random.gammavariate(self.error_freedom / 2, 2)
            again = Analysis(fitted + noise, self.replications, errors)
            drawn.append({source.name: source.share for source in again.sources()})
        return drawn


def _squares(values: NDArray[np.float64]) -> float:
    return float((values**2).sum())


def analyse(cells: Sequence[Sequence[Sequence[float]]], *, log: bool = False) -> Analysis:
    """The analysis of `cells[a][b]`, the observations with level a of A and level b of B.

    With `log` it is done for their decimal logarithms: factors that multiply, as a server's and a
    client's speed do, add up there, and effects are powers of ten.

    Raises ValueError if combinations have not all equally many observations, or a logarithm is
    asked of what has none.
    """
    if not cells or not cells[0] or not cells[0][0]:
        raise ValueError("there is nothing to analyse")
    try:
        values = np.array(cells, float)
    except ValueError:
        raise ValueError("the combinations have not all equally many observations") from None
    if log and (values <= 0).any():
        raise ValueError("what is not above 0 has no logarithm")
    values = np.log10(values) if log else values
    means = values.mean(2)
    return Analysis(means, values.shape[2], _squares(values - means[:, :, None]))
