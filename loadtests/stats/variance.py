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
        """Whether it differs from 0."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


@dataclass(frozen=True)
class Analysis:
    """`replications` of each of the combinations of the levels of A and B.

    `interactions` has a row for each level of A; without replication they are the residuals, count
    as errors, and `ssab` is 0. SSY is the sum of all squares, SS0 that of the mean.
    """

    replications: int
    mean: float
    a_effects: tuple[float, ...]
    b_effects: tuple[float, ...]
    interactions: tuple[tuple[float, ...], ...]
    ssy: float
    ss0: float
    ssa: float
    ssb: float
    ssab: float
    sse: float

    @property
    def sst(self) -> float:
        """The total variation."""
        return self.ssa + self.ssb + self.ssab + self.sse

    @property
    def replicated(self) -> bool:
        """Whether interaction and error are told apart."""
        return self.replications > 1

    @property
    def error_freedom(self) -> int:
        """Degrees of freedom of the errors."""
        a, b, r = len(self.a_effects), len(self.b_effects), self.replications
        return a * b * (r - 1) if self.replicated else (a - 1) * (b - 1)

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the errors."""
        return math.sqrt(self.sse / self.error_freedom) if self.error_freedom else None

    def sources(self) -> list[Source]:
        """A, B, their interaction (if it can be told) and the errors."""
        a, b = len(self.a_effects), len(self.b_effects)
        rows = [("A", self.ssa, a - 1), ("B", self.ssb, b - 1)]
        if self.replicated:
            rows.append(("AB", self.ssab, (a - 1) * (b - 1)))
        lines = [self._source(*row) for row in rows]
        square = self.sse / self.error_freedom if self.error_freedom else None
        return [
            *lines,
            Source("error", self.sse, self._share(self.sse), self.error_freedom, square),
        ]

    def _share(self, squares: float) -> float:
        return squares / self.sst if self.sst else 0.0

    def _source(self, name: str, squares: float, freedom: int) -> Source:
        square = squares / freedom if freedom else None
        share = self._share(squares)
        if square is None or not self.sse or not self.error_freedom:
            return Source(name, squares, share, freedom, square)
        f = square / (self.sse / self.error_freedom)
        # Only now: SciPy is slow to load, and a run does without it.
        from scipy.special import fdtrc

        probability = float(fdtrc(freedom, self.error_freedom, f))
        return Source(name, squares, share, freedom, square, f, probability)

    def mean_interval(self, confidence: float) -> Interval:
        """The mean of all."""
        return self._interval(self.mean, 1, confidence)

    def a_interval(self, level: int, confidence: float) -> Interval:
        """The effect of a level of A."""
        return self._interval(self.a_effects[level], len(self.a_effects) - 1, confidence)

    def b_interval(self, level: int, confidence: float) -> Interval:
        """The effect of a level of B."""
        return self._interval(self.b_effects[level], len(self.b_effects) - 1, confidence)

    def interaction_interval(self, a: int, b: int, confidence: float) -> Interval:
        """What the two levels do together beyond what each does alone; needs replication."""
        parts = (len(self.a_effects) - 1) * (len(self.b_effects) - 1)
        return self._interval(self.interactions[a][b], parts, confidence)

    def _interval(self, value: float, parts: int, confidence: float) -> Interval:
        """`parts` of the abr observations' variance are that of the value (Jain, table 22.4)."""
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
        drawn = []
        for _ in range(DRAWS):
            means = [
                [
                    self.mean + a + b + both + random.gauss(0, spread)
                    for b, both in zip(self.b_effects, row, strict=True)
                ]
                for a, row in zip(self.a_effects, self.interactions, strict=True)
            ]
            # The squares of errors are distributed as chi squared, a gamma distribution.
            errors = self.deviation**2 * random.gammavariate(self.error_freedom / 2, 2)
            again = _of_means(means, self.replications)
            squares = {"A": again.ssa, "B": again.ssb, "AB": again.ssab, "error": errors}
            total = sum(squares.values())
            drawn.append({name: part / total for name, part in squares.items()})
        return drawn


def _of_means(means: Sequence[Sequence[float]], replications: int) -> Analysis:
    """The analysis of the means of combinations, all of it interaction that could be an error."""
    a, b = len(means), len(means[0])
    mean = statistics.fmean(value for row in means for value in row)
    a_effects = tuple(statistics.fmean(row) - mean for row in means)
    b_effects = tuple(statistics.fmean(column) - mean for column in zip(*means, strict=True))
    interactions = tuple(
        tuple(value - mean - of_a - of_b for value, of_b in zip(row, b_effects, strict=True))
        for row, of_a in zip(means, a_effects, strict=True)
    )
    return Analysis(
        replications,
        mean,
        a_effects,
        b_effects,
        interactions,
        ssy=0.0,
        ss0=a * b * replications * mean**2,
        ssa=b * replications * sum(effect**2 for effect in a_effects),
        ssb=a * replications * sum(effect**2 for effect in b_effects),
        ssab=replications * sum(value**2 for row in interactions for value in row),
        sse=0.0,
    )


def analyse(cells: Sequence[Sequence[Sequence[float]]], *, log: bool = False) -> Analysis:
    """The analysis of `cells[a][b]`, the observations with level a of A and level b of B.

    With `log` it is done for their decimal logarithms: factors that multiply, as a server's and a
    client's speed do, add up there, and effects are powers of ten.

    Raises ValueError if combinations have not all equally many observations, or a logarithm is
    asked of what has none.
    """
    if not cells or not cells[0] or not cells[0][0]:
        raise ValueError("there is nothing to analyse")
    b, replications = len(cells[0]), len(cells[0][0])
    if any(len(row) != b or any(len(cell) != replications for cell in row) for row in cells):
        raise ValueError("the combinations have not all equally many observations")
    if log:
        if any(value <= 0 for row in cells for cell in row for value in cell):
            raise ValueError("what is not above 0 has no logarithm")
        cells = [[[math.log10(value) for value in cell] for cell in row] for row in cells]
    means = [[statistics.fmean(cell) for cell in row] for row in cells]
    of_means = _of_means(means, replications)
    replicated = replications > 1
    errors = sum(
        (value - mean) ** 2
        for row, row_means in zip(cells, means, strict=True)
        for cell, mean in zip(row, row_means, strict=True)
        for value in cell
    )
    return Analysis(
        replications,
        of_means.mean,
        of_means.a_effects,
        of_means.b_effects,
        of_means.interactions,
        ssy=sum(value**2 for row in cells for cell in row for value in cell),
        ss0=of_means.ss0,
        ssa=of_means.ssa,
        ssb=of_means.ssb,
        ssab=of_means.ssab if replicated else 0.0,
        sse=errors if replicated else of_means.ssab,
    )
