"""Search for the best of many candidates when each measurement is noisy and takes time.

A guess is corrected by what was measured: what a candidate was better than its guess, its
neighbours are expected to be, the more the nearer they are. Next is measured what may be best,
where little is known more than where much is. The leaders are then measured in turns for longer,
so that the winner is not the one that was lucky once.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count

from loadtests.advise.configuration import Configuration, distance

CURIOSITY = 0.12
"""By how much, in logarithms, the unknown may be better than is expected of it."""
NEAR = 2.0
"""Squared distance, in doublings, over which a measurement says less and less."""
PATIENCE = 5
"""Measurements without a better one after which exploring ends."""
PROGRESS = 1.02
"""What counts as better."""
HOPELESS = 0.9
"""Share of the best below which nothing that is hoped for is worth a look."""
FAILED = math.log(0.3)
"""What is expected of the neighbours of one that failed."""
ADVANCED = (1.0, 0.5, 0.5, 0.8)
"""Shares of the best score with which the first, second, … go into the last rounds: a short look
may have had bad luck."""
BEHIND = 0.93
"""Share of the leader's score below which a candidate leaves them."""
BLURRED = 0.25
"""Difference in logarithms that a single short look does not tell from noise."""
LEAST_NOISE = 0.005
SIGNIFICANT = 0.975
FINALS = 0.45
"""The share of the time that is kept for measuring the leaders in turns."""
ROUNDS, MOST_ROUNDS = 3, 8
"""Rounds of the leaders; and those after which more time would change nothing."""
FOR_RATE = 60
"""Answers without which their number means little."""
LOOK = 1.5
"""Seconds after which a short look says little more, unless requests take long."""

Left = Callable[[], float]
"""The seconds that are left."""
Measure = Callable[[Configuration, float, int | None], float | None]
"""Candidate, seconds, and the number of the last round (None: exploring) to its score; None if it
failed."""


@dataclass(frozen=True)
class Pace:
    """`cost` is what a measurement takes besides its seconds."""

    short: float
    long: float
    cost: float


def pace(seconds: float, cost: float, service: float, rate: float) -> Pace:
    """How long to measure within so many seconds: a dozen short looks, then six longer ones.

    None is so short that it says nothing of requests that take `service` seconds and are answered
    at about this rate. Up to LOOK, none is shorter than a start (`cost`): else most of the time
    goes to starting servers, and noise hides the best.
    """
    needed = max(8 * service, FOR_RATE / rate, 0.2, min(cost, LOOK))
    least = min(needed, max(seconds / 8, 0.2))
    short = max(least, min(LOOK, seconds * 0.6 / 12 - cost))
    return Pace(short, max(short, min(3.0, seconds * 0.4 / 6 - cost)), cost)


@dataclass
class Found:
    """What a search knows: short looks, and the rounds of the leaders."""

    guesses: Mapping[Configuration, float]
    seen: dict[Configuration, float] = field(default_factory=dict)
    failed: list[Configuration] = field(default_factory=list)
    rounds: list[dict[Configuration, float]] = field(default_factory=list)

    def ratio(self, one: Configuration, other: Configuration) -> float:
        """Score to score, within rounds where both were measured; else of the short looks."""
        ratios = [r[one] / r[other] for r in self.rounds if one in r and other in r]
        if ratios:
            return statistics.median(ratios)
        return self.seen.get(one, 0.0) / self.seen[other] if other in self.seen else 0.0

    def score(self, one: Configuration) -> float:
        """The median of the rounds; before these the short look."""
        values = [r[one] for r in self.rounds if one in r]
        return statistics.median(values) if values else self.seen.get(one, 0.0)

    def finalists(self) -> set[Configuration]:
        """Those that were measured in rounds; if no two were, all that were looked at."""
        compared = {one for r in self.rounds for one in r} - set(self.failed)
        return compared if len(compared) > 1 else set(self.seen) - set(self.failed)

    def leader(self) -> Configuration | None:
        return max(self.finalists(), key=self.score, default=None)

    def alike(self, one: Configuration, other: Configuration) -> bool:
        """Whether noise alone may make the difference between two (paired t-test, 95 %).

        The noise is that of all pairs with `other`. Short looks tell apart only what is far apart.
        """
        ratios = {
            each: [math.log(r[each] / r[other]) for r in self.rounds if each in r and other in r]
            for each in self.finalists() - {other}
        }
        own = ratios.get(one, [])
        freedom = sum(len(found) - 1 for found in ratios.values() if found)
        if not own or not freedom:
            return abs(math.log(self.ratio(one, other) or 1e-9)) < BLURRED
        squares = sum(sum((x - statistics.fmean(f)) ** 2 for x in f) for f in ratios.values() if f)
        error = max(math.sqrt(squares / freedom), LEAST_NOISE) / math.sqrt(len(own))
        # Only now: SciPy is slow to load.
        from scipy.special import stdtr

        return float(stdtr(freedom, abs(statistics.fmean(own)) / error)) < SIGNIFICANT

    def equals(self, tie: float) -> list[Configuration]:
        """The leader and what is as good, smallest first: within a share of `tie`, or within three
        times that and not told apart by the noise.
        """
        leader = self.leader()
        if leader is None:
            return []
        shares = {one: self.ratio(one, leader) for one in self.finalists() - {leader}}
        as_good = [
            one
            for one, share in shares.items()
            if share >= 1 - tie or (share >= 1 - 2 * tie and self.alike(one, leader))
        ]
        return sorted([leader, *as_good], key=lambda one: one.size)

    def winner(self, tie: float) -> Configuration | None:
        """The smallest of those that are as good as the leader."""
        return next(iter(self.equals(tie)), None)

    def expected(self, one: Configuration) -> tuple[float, float]:
        """The logarithm of the score expected of a candidate, and how little is known of it."""
        weight = corrections = 0.0
        known = [(o, 1, math.log(s) - math.log(self.guesses[o])) for o, s in self.seen.items()]
        for other, steep, correction in known + [(other, 4, FAILED) for other in self.failed]:
            near = math.exp(-distance(one, other) / NEAR * steep)
            corrections += near * correction
            weight += near
        # What the best was better than its guess: of those far away as much is hoped.
        best = max(self.seen, key=lambda one: self.seen[one], default=None)
        if best is not None:
            corrections += 0.2 * (math.log(self.seen[best]) - math.log(self.guesses[best]))
        return math.log(self.guesses[one]) + corrections / (weight + 0.2), 1 / (1 + 2 * weight)

    def hope(self, one: Configuration) -> float:
        """The logarithm of the score that a candidate may have."""
        expected, uncertain = self.expected(one)
        return expected + CURIOSITY * uncertain


def search(measure: Measure, found: Found, left: Left, tempo: Pace, tie: float) -> None:
    """Short looks, then the leaders in turns; and again, while there is time for it."""
    least = 3
    while True:
        before = left()
        explore(measure, found, left, tempo, least, FINALS * before)
        _decide(measure, found, left, tempo, tie)
        least = 0
        late = left() < tempo.long + tempo.cost or left() == before
        if late or len(found.rounds) >= MOST_ROUNDS:
            return


def explore(
    measure: Measure, found: Found, left: Left, pace: Pace, least: int = 0, kept: float = 0.0
) -> None:
    """Short looks while more than the seconds to be kept are left, but at least so many."""
    since = 0
    best = max(found.seen.values(), default=0.0)
    first = _first(found)
    for taken in count():
        unknown = [
            one for one in found.guesses if one not in found.seen and one not in found.failed
        ]
        late = taken >= least and left() < kept + pace.short + pace.cost
        if late or not unknown or since >= PATIENCE:
            return
        chosen = first[taken] if taken < len(first) else max(unknown, key=found.hope)
        if taken >= len(first) and best and found.hope(chosen) < math.log(best * HOPELESS):
            return
        score = measure(chosen, pace.short, None)
        if score is None:
            found.failed.append(chosen)
        else:
            found.seen[chosen] = score
        if taken >= len(first):
            since = 0 if (score or 0) > best * PROGRESS else since + 1
        best = max(best, score or 0)


def _first(found: Found) -> list[Configuration]:
    """The most promising of each mode, the most promising mode first."""
    best: dict[str, Configuration] = {}
    for one in sorted(found.guesses, key=lambda one: -found.guesses[one]):
        best.setdefault(one.mode, one)
    known = {one.mode for one in found.seen} | {one.mode for one in found.failed}
    top = max(found.guesses.values(), default=0.0)
    return [
        one
        for mode, one in best.items()
        if one not in found.seen and (mode not in known or found.guesses[one] > top / 2)
        if found.guesses[one] > top / 4
    ]


def _decide(measure: Measure, found: Found, left: Left, pace: Pace, tie: float) -> None:
    """Measures the leaders of the short looks in turns, those that fall behind no more."""
    alive = [one for one in found.seen if one not in found.failed]
    order = sorted(alive, key=found.score, reverse=True)
    candidates = [
        one
        for one, share in zip(order, ADVANCED, strict=False)
        if found.score(one) >= share * found.score(order[0])
    ]
    for number in range(ROUNDS):
        if number and left() < len(candidates) * (pace.long + pace.cost):
            return
        scores: dict[Configuration, float] = {}
        # Another one first each time.
        turn = number % max(len(candidates), 1)
        for one in candidates[turn:] + candidates[:turn]:
            # One is measured at least, whatever the time.
            if left() < pace.long + pace.cost and (number or found.rounds):
                return
            score = measure(one, pace.long, number)
            if score is None:
                found.failed.append(one)
                continue
            if not scores:
                found.rounds.append(scores)
            scores[one] = score
        leader = found.leader()
        candidates = [
            one
            for one in candidates
            if leader and one not in found.failed and found.ratio(one, leader) >= BEHIND - tie
        ]
        if len(candidates) < 2:
            return
