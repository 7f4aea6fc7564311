"""Computes the best configurations for throughput, p99 and memory from what was measured."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from loadtests.advise.configuration import COMPUTING, WAITING, Configuration, Probe, sensible
from loadtests.advise.search import Found, Pace, explore, pace, search
from loadtests.advise.trial import Bench, Sample
from loadtests.clients.load import SATURATED
from loadtests.errors import LabError

THROUGHPUT, P99, MEMORY = AIMS = ("throughput", "p99", "memory")
ENOUGH = 0.9
"""The share of the best throughput that the answer for memory has to reach."""
LOAD = 0.7
"""The share of the best throughput at which p99 is asked for, if no rate is given."""
ROOM = 1.1
"""A candidate is asked for its p99 if its throughput is so many times the rate."""
STAGES = {THROUGHPUT: ("search", "final"), P99: ("p99 search", "p99 final")}
"""Names of the short looks and of the rounds."""
TIE = {THROUGHPUT: 0.03, P99: 0.1, MEMORY: 0.03}
"""Shares within which the smaller configuration wins."""
KEPT = {P99: 0.3, MEMORY: 0.15}
"""Shares of the budget that are kept for the searches that come later."""
FOR_P99 = 400
"""Requests without which a p99 means little."""
ROUGH = f"of one measurement, or of fewer than {FOR_P99} requests"
"""What makes a p99 rough."""
OTHERS = 0.15
"""Share of the machine that others used from which on it has to be said."""
PROBE_SECONDS = 0.4
PROBED = (Configuration("single"), Configuration("threading", 1, 8))
"""Who is asked first, alone: the second if the first cannot."""


@dataclass(frozen=True)
class Wish:
    """What is asked for. The last of `connections` is the load that counts, the others are shown.

    `rate` is 0 for LOAD of the best, `max_memory` in bytes or 0.
    """

    connections: Sequence[int]
    cores: int
    rate: float = 0
    max_memory: int = 0
    aims: Sequence[str] = AIMS


class Answer(NamedTuple):
    """A configuration, and the sentence that says why."""

    configuration: Configuration
    reason: str


@dataclass
class Advice:
    """All that was found. `answers` and `found`, a search, are by aim; `samples` all measurements.

    `rate` is the one at which p99 was asked for, `best` the best throughput.
    """

    wish: Wish
    probe: Probe
    answers: dict[str, Answer] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    rate: float = 0.0
    best: float = 0.0
    seconds: float = 0.0
    found: dict[str, Found] = field(default_factory=dict)
    samples: Sequence[Sample] = ()

    @property
    def is_rough(self) -> bool:
        """Whether others used much of the machine in many of the measurements."""
        busy = [one for one in self.samples if one.others_busy > OTHERS]
        return len(busy) > len(self.samples) / 4

    def taken(self, one: Configuration, *, at_rate: bool = False) -> list[Sample]:
        """What was measured of a configuration under the load that counts: rounds, if any."""
        taken = [
            sample
            for sample in self.samples
            if sample.configuration == one
            and sample.connections == self.wish.connections[-1]
            and bool(sample.asked) == (at_rate and self.rate > 0)
            and sample.stage.startswith("p99") == at_rate
            and not sample.failure
        ]
        return [sample for sample in taken if sample.stage.endswith("final")] or taken

    def median(self, one: Configuration, value: str, *, at_rate: bool = False) -> float:
        """The median of a field of the samples; 0 if there are none."""
        taken = self.taken(one, at_rate=at_rate)
        return statistics.median(getattr(sample, value) for sample in taken) if taken else 0.0

    def is_rough_p99(self, one: Configuration) -> bool:
        """Whether little was measured of its p99."""
        taken = self.taken(one, at_rate=True)
        return len(taken) < 2 or sum(sample.requests for sample in taken) < FOR_P99


def advise(bench: Bench, candidates: Sequence[Configuration], wish: Wish, seconds: float) -> Advice:
    """Searches for what is asked for, for so many seconds.

    Raises LabError if the application cannot be measured at all.
    """
    started = time.monotonic()
    first = {one.mode: one for one in reversed(candidates) if one.told is not None}
    probe, cost = _probe(bench, seconds, [*first.values()] or PROBED)
    share = {COMPUTING: 1.0, WAITING: 0.0}.get(probe.kind, probe.share)
    candidates = sensible(candidates, wish.cores, share)
    advice = Advice(wish, probe, samples=bench.samples)
    searching = _Search(bench, seconds, started + seconds, cost, advice)
    searching.throughput(candidates)
    if P99 in wish.aims:
        searching.p99()
    if MEMORY in wish.aims:
        searching.memory()
    searching.levels()
    advice.remarks += _remarks(bench.samples, rough=advice.is_rough)
    advice.seconds = time.monotonic() - started
    return advice


def _probe(bench: Bench, budget: float, probed: Sequence[Configuration]) -> tuple[Probe, float]:
    reasons = []
    for one in probed:
        for seconds in (PROBE_SECONDS, max(10 * PROBE_SECONDS, budget / 20)):
            began = time.monotonic()
            sample = bench.take(one, seconds, 1, "alone")
            if sample.requests or not sample.start_seconds:
                break
        if sample.failure:
            reasons.append(f"{one.name}: {sample.failure}")
            continue
        cost = max(time.monotonic() - began - sample.seconds, 0.05)
        # Not all delays are in the way of a request; none takes less than the fastest.
        least = max(sample.least_us, sample.cpu_us, 1.0)
        mean = max(sample.mean_us - sample.delayed_us, least) / 1e6
        cpu = min(max(sample.cpu_us / 1e6, mean / 1000), mean)
        return Probe(mean, cpu, sample.pss), cost
    if why := bench.target.why_not():
        reasons = [why]
    raise LabError("the application cannot be measured. " + "; ".join(dict.fromkeys(reasons)))


@dataclass
class _Search:
    """One search after the other within so many seconds; `cost` is the time to start and stop."""

    bench: Bench
    seconds: float
    end: float
    cost: float
    advice: Advice

    def _left(self) -> float:
        return self.end - time.monotonic()

    def _take(
        self, one: Configuration, seconds: float, stage: str, number: int | None, rate: float = 0.0
    ) -> Sample | None:
        """A measurement under the load that counts; None if it failed or took too much memory."""
        wish = self.advice.wish
        sample = self.bench.take(one, seconds, wish.connections[-1], stage, number, rate)
        return None if sample.failure or 0 < wish.max_memory < sample.pss else sample

    def _hunt(
        self,
        aim: str,
        guesses: dict[Configuration, float],
        expected: float,
        score: Callable[[Sample], float],
        rate: float = 0.0,
    ) -> Found:
        """Searches for the highest score, for the share of the budget that this aim has."""
        found = self.advice.found[aim] = Found(guesses)
        later = AIMS[AIMS.index(aim) + 1 :]
        kept = self.seconds * sum(KEPT[one] for one in later if one in self.advice.wish.aims)

        def left() -> float:
            return self._left() - kept

        def measure(one: Configuration, seconds: float, number: int | None) -> float | None:
            sample = self._take(one, seconds, STAGES[aim][number is not None], number, rate)
            return score(sample) if sample else None

        tempo = pace(max(left(), 0.0), self.cost, self.advice.probe.service, expected)
        if aim == P99:
            least = min(FOR_P99 / expected, max(self.seconds / 20, 0.3))
            tempo = replace(tempo, short=max(tempo.short, least), long=max(tempo.long, least))
        search(measure, found, left, tempo, TIE[aim])
        return found

    def _answer(self, aim: str, reason: str) -> None:
        found = self.advice.found[aim]
        winner, *others = found.equals(TIE[aim])
        if others:
            names = ", ".join(one.name for one in others[:3])
            reason += f"; no better, as far as the noise lets one see: {names}"
        elif following := found.finalists() - {winner}:
            second = max(following, key=lambda one: found.ratio(one, winner))
            reason += f"; the next is {second.name} with {found.ratio(second, winner):.2f} of it"
        self.advice.answers[aim] = Answer(winner, reason)

    def throughput(self, candidates: Sequence[Configuration]) -> None:
        """Requests per second, each connection as fast as it is answered."""
        advice, wish = self.advice, self.advice.wish
        connections = wish.connections[-1]
        guesses = {one: advice.probe.throughput(one, connections, wish.cores) for one in candidates}
        expected = max(guesses.values(), default=1.0)
        found = self._hunt(THROUGHPUT, guesses, expected, lambda sample: sample.rate)
        leader, winner = found.leader(), found.winner(TIE[THROUGHPUT])
        if not leader or not winner:
            raise LabError(_nothing(self.bench.samples, wish))
        advice.best = found.score(leader)
        if THROUGHPUT in wish.aims:
            reason = f"{found.score(winner):,.0f} requests/s with {connections} connections"
            self._answer(THROUGHPUT, reason)

    def p99(self) -> None:
        """The p99 at a rate, of those that can do that with room to spare."""
        advice, wish = self.advice, self.advice.wish
        rate = 0.0 if self.bench.workload.locustfile else wish.rate or LOAD * advice.best
        advice.rate = rate
        able = {
            one: 1 / advice.probe.latency(expected, rate or expected * LOAD)
            for one, expected in self._capacities().items()
            if expected >= rate * ROOM
        }
        if not able:
            why = (
                f"no configuration that was found can do {rate:,.0f} requests/s with room to spare"
            )
            advice.remarks.append(f"No p99: {why}.")
            return
        found = self._hunt(P99, able, rate or advice.best, Sample.calm, rate)
        users = f"with {wish.connections[-1]} users as fast as they can"
        how = f"at {rate:,.0f} requests/s" if rate else users
        if rate and not wish.rate:
            how += f" ({LOAD * 100:.0f} % of the best)"
        winner = found.winner(TIE[P99])
        if winner is None:
            failures = (
                f"{one.configuration.name}: {one.failure}"
                for one in advice.samples
                if one.stage in STAGES[P99] and one.failure
            )
            why = next(failures, "all take more memory than is allowed")
            advice.remarks.append(f"No p99: all that were tried fail {how}. {why}.")
            return
        how += f", rough: {ROUGH}" * advice.is_rough_p99(winner)
        self._answer(P99, f"p99 {1e3 / found.score(winner):,.1f} ms {how}")

    def _capacities(self) -> dict[Configuration, float]:
        """The throughput of all that did not fail: measured, else expected."""
        found = self.advice.found[THROUGHPUT]
        return {
            one: found.score(one) or math.exp(found.expected(one)[0])
            for one in found.guesses
            if one not in found.failed
        }

    def memory(self) -> None:
        """The least memory of those with nearly the best throughput, preloaded or not."""
        advice = self.advice
        wanted = ENOUGH * advice.best
        enough = [one for one, rate in self._capacities().items() if rate >= wanted]
        preloaded = [
            replace(one, preload=True) for one in enough if one.workers > 1 and one.told is None
        ]
        guesses = {one: 1 / advice.probe.memory(one) for one in [*enough, *preloaded]}
        found = advice.found[MEMORY] = Found(guesses)
        known = ((one, advice.median(one, "pss")) for one in enough)
        found.seen |= {one: 1 / pss for one, pss in known if pss}

        def measure(one: Configuration, seconds: float, number: int | None) -> float | None:
            sample = self._take(one, seconds, "memory", number)
            return 1 / sample.pss if sample and advice.median(one, "rate") >= wanted else None

        long = pace(max(self._left(), 0.0), self.cost, advice.probe.service, advice.best).long
        explore(measure, found, self._left, Pace(long, long, self.cost))
        winner = found.winner(TIE[MEMORY])
        if winner is None:
            return
        reason = (
            f"{advice.median(winner, 'pss') / 2**20:,.1f} MiB, with "
            f"{advice.median(winner, 'rate') / advice.best:.2f} of the best throughput "
            f"(at least {ENOUGH:.2f} is asked for)"
        )
        advice.answers[MEMORY] = Answer(winner, reason)

    def levels(self) -> None:
        """The answers under the lighter loads, as far as there is time."""
        chosen = dict.fromkeys(one.configuration for one in self.advice.answers.values())
        seconds = max(0.5, min(2.0, 8 * self.advice.probe.service))
        for connections in reversed(self.advice.wish.connections[:-1]):
            for one in chosen:
                if self._left() < seconds + self.cost:
                    return
                self.bench.take(one, seconds, connections, "level")


def _nothing(samples: Sequence[Sample], wish: Wish) -> str:
    failures = dict.fromkeys(
        f"{one.configuration.name}: {one.failure}" for one in samples if one.failure
    )
    if failures:
        return "no configuration can be advised. " + "; ".join(list(failures)[:4])
    return (
        f"no configuration that was tried needs less than {wish.max_memory / 2**20:,.0f} MiB; the "
        f"smallest took {min(one.pss for one in samples) / 2**20:,.1f}"
    )


def _remarks(samples: Sequence[Sample], *, rough: bool) -> list[str]:
    told = []
    if rough:
        most = max(one.others_busy for one in samples)
        told.append(
            f"Something else used up to {most * 100:.0f} % of this machine meanwhile: these "
            "figures are rough. Measure again when it is idle."
        )
    limited = [one for one in samples if one.client_busy >= SATURATED]
    if limited:
        told.append(
            f"In {len(limited)} of {len(samples)} measurements the client had no core left: there "
            "it is the client that was measured, and configurations that look alike may differ."
        )
    for at_rate, where in ((False, "and so not advised"), (True, "at the rate of p99")):
        failed = [one for one in samples if one.failure and (one.stage in STAGES[P99]) == at_rate]
        if names := ", ".join(dict.fromkeys(one.configuration.name for one in failed)):
            told.append(f"Failed, {where}: {names}.")
    return told
