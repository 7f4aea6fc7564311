"""The three answers: for throughput, for p99 and for memory."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from loadtests.advise import prior
from loadtests.advise.configuration import Configuration
from loadtests.advise.prior import Probe
from loadtests.advise.search import Found, Measure, Pace, decide, explore
from loadtests.advise.trial import Bench, Sample
from loadtests.errors import LabError

THROUGHPUT, P99, MEMORY = AIMS = ("throughput", "p99", "memory")
ENOUGH = 0.9
"""The share of the best throughput that the answer for memory has to reach."""
LOAD = 0.7
"""The share of the best throughput at which p99 is asked for, if no rate is given."""
ROOM = 1.1
"""A candidate is asked for its p99 if its throughput is so many times the rate."""
TIE = {THROUGHPUT: 0.03, P99: 0.1, MEMORY: 0.03}
"""Shares within which the smaller configuration wins."""
SHARES = {THROUGHPUT: 0.55, P99: 0.85, MEMORY: 1.0}
"""What of the budget is spent when the search for each ends, if all are asked for."""
FOR_RATE = 60
"""Answers without which their number means little."""
FOR_P99 = 400
"""Requests without which a p99 means little."""
PROBE_SECONDS = 0.4
PROBED = (Configuration("single"), Configuration("threading", 1, 8))
"""Who is asked first, alone: the second if the first cannot."""


@dataclass(frozen=True)
class Wish:
    """What is asked for. The last of `connections` is the load that counts, the others are shown.

    `rate` is 0 for LOAD of the best, `max_memory` in octets or 0.
    """

    connections: Sequence[int]
    cores: int
    rate: float = 0
    max_memory: int = 0
    aims: Sequence[str] = AIMS


@dataclass(frozen=True)
class Answer:
    """A configuration, and the sentence that says why."""

    aim: str
    configuration: Configuration
    reason: str


@dataclass
class Advice:
    """All that is told in the end."""

    wish: Wish
    probe: Probe
    answers: list[Answer] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    rate: float = 0.0
    best: float = 0.0
    seconds: float = 0.0

    def answer(self, aim: str) -> Answer | None:
        """The answer to one of AIMS."""
        return next((one for one in self.answers if one.aim == aim), None)


class Budget:
    """Seconds from now on."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._started = time.monotonic()

    def spent(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._started

    def left(self) -> float:
        """Seconds to the end."""
        return self.seconds - self.spent()


def pace(seconds: float, cost: float, service: float, rate: float) -> Pace:
    """How long to measure within so many seconds: a dozen short looks, then six longer ones.

    None is so short that it says nothing of requests that take `service` seconds and are answered
    at about this rate.
    """
    least = min(max(8 * service, FOR_RATE / rate, 0.2), max(seconds / 8, 0.2))
    short = max(least, min(1.5, seconds * 0.6 / 12 - cost))
    long = max(short, min(3.0, seconds * 0.4 / 6 - cost))
    return Pace(short, long, 3, cost)


def advise(bench: Bench, candidates: Sequence[Configuration], wish: Wish, budget: Budget) -> Advice:
    """Searches for what is asked for.

    Raises LabError if the application cannot be measured at all.
    """
    probe, cost = _probe(bench, wish, budget)
    advice = Advice(wish, probe)
    found = _throughput(bench, candidates, advice, budget, cost)
    if P99 in wish.aims:
        _p99(bench, found, advice, budget, cost)
    if MEMORY in wish.aims:
        _memory(bench, found, advice, budget, cost)
    _levels(bench, advice, budget, cost)
    advice.answers.sort(key=lambda one: AIMS.index(one.aim))
    advice.remarks += _remarks(bench.samples)
    advice.seconds = budget.spent()
    return advice


def _probe(bench: Bench, wish: Wish, budget: Budget) -> tuple[Probe, float]:
    reasons = []
    for one in PROBED:
        for seconds in (PROBE_SECONDS, max(10 * PROBE_SECONDS, budget.seconds / 20)):
            began = budget.spent()
            sample = bench.take(one, seconds, 1, "alone")
            if sample.requests or not sample.start_seconds:
                break
        if sample.failure:
            reasons.append(f"{one.name}: {sample.failure}")
            continue
        cost = max(budget.spent() - began - sample.seconds, 0.05)
        mean = max(sample.mean_us - sample.delayed_us, sample.cpu_us, 1.0) / 1e6
        cpu = min(max(sample.cpu_us / 1e6, mean / 1000), mean)
        return Probe(mean, cpu, sample.pss), cost
    if why := bench.target.why_not():
        reasons = [why]
    raise LabError("the application cannot be measured. " + "; ".join(dict.fromkeys(reasons)))


def _until(aim: str, wish: Wish, budget: Budget) -> float:
    """How many seconds are to be left when this search ends."""
    share = SHARES[aim]
    if aim == THROUGHPUT:
        share = {(): 1.0, (P99,): 0.65, (MEMORY,): 0.8}.get(
            tuple(other for other in wish.aims if other != THROUGHPUT), share
        )
    elif aim == P99 and MEMORY not in wish.aims:
        share = 1.0
    return budget.seconds * (1 - share)


def _throughput(
    bench: Bench,
    candidates: Sequence[Configuration],
    advice: Advice,
    budget: Budget,
    cost: float,
) -> Found:
    wish = advice.wish
    connections = wish.connections[-1]
    found = Found(prior.throughput(advice.probe, candidates, connections, wish.cores))
    until = _until(THROUGHPUT, wish, budget)
    expected = max(found.guesses.values(), default=1.0)
    tempo = pace(max(budget.left() - until, 0.0), cost, advice.probe.service, expected)

    def measure(one: Configuration, seconds: float, number: int | None) -> float | None:
        stage = "search" if number is None else "final"
        sample = bench.take(one, seconds, connections, stage, number)
        if sample.failure or 0 < wish.max_memory < sample.pss:
            return None
        return sample.rate

    search(measure, found, budget, until, tempo, TIE[THROUGHPUT])
    leader, winner = found.leader(), found.winner(TIE[THROUGHPUT])
    if leader is None or winner is None:
        raise LabError(_nothing(bench.samples, wish))
    advice.best = found.score(leader)
    if THROUGHPUT in wish.aims:
        reason = f"{found.score(winner):,.0f} requests/s with {connections} connections"
        advice.answers.append(Answer(THROUGHPUT, winner, reason + _against(found, winner)))
    return found


def search(
    measure: Measure, found: Found, clock: Budget, until: float, tempo: Pace, tie: float
) -> None:
    """Short looks in the first half of the time, then the leaders in turns."""
    explore(measure, found, clock, until + 0.4 * (clock.left() - until), tempo)
    decide(measure, found, clock, until, tempo, tie)


def _against(found: Found, winner: Configuration) -> str:
    leader = found.leader()
    if leader is not None and leader != winner:
        share = found.ratio(winner, leader)
        return f"; {leader.name} is larger and no better than by chance ({share:.2f} of it)"
    others = [one for one in found.seen if one != winner and one not in found.failed]
    if not others:
        return ""
    second = max(others, key=lambda one: found.ratio(one, winner))
    return f"; the next is {second.name} with {found.ratio(second, winner):.2f} of it"


def _p99(bench: Bench, through: Found, advice: Advice, budget: Budget, cost: float) -> None:
    wish, probe = advice.wish, advice.probe
    connections = wish.connections[-1]
    rate = (wish.rate or LOAD * advice.best) if bench.asking.at_a_rate else 0.0
    advice.rate = rate
    able = {}
    for one in through.guesses:
        capacity = through.seen.get(one) and through.score(one)
        if one in through.failed:
            continue
        expected = capacity or 2.718281828 ** through.expected(one)[0]
        if expected >= rate * ROOM:
            able[one] = 1 / prior.latency(probe, expected, rate or expected * LOAD)
    if not able:
        advice.remarks.append(
            f"No p99: no configuration that was found can do {rate:,.0f} requests/s with room to "
            "spare."
        )
        return
    found = Found(able)
    until = _until(P99, wish, budget)
    tempo = pace(max(budget.left() - until, 0.0), cost, probe.service, rate or advice.best)
    least = min(FOR_P99 / (rate or advice.best), max(budget.seconds / 20, 0.3))
    tempo = Pace(max(tempo.short, least), max(tempo.long, least), tempo.rounds, cost)

    def measure(one: Configuration, seconds: float, number: int | None) -> float | None:
        stage = "p99 search" if number is None else "p99 final"
        sample = bench.take(one, seconds, connections, stage, number, rate)
        if sample.failure or 0 < wish.max_memory < sample.pss:
            return None
        return 1e6 / max(sample.p99_us, 1.0)

    search(measure, found, budget, until, tempo, TIE[P99])
    winner = found.winner(TIE[P99])
    if winner is None:
        advice.remarks.append(f"No p99: nothing that was tried stands {rate:,.0f} requests/s.")
        return
    how = f"at {rate:,.0f} requests/s" if rate else f"with {connections} users as fast as they can"
    if rate and not wish.rate:
        how += f" ({LOAD * 100:.0f} % of the best)"
    reason = f"p99 {1e3 / found.score(winner):,.1f} ms {how}{_against(found, winner)}"
    advice.answers.append(Answer(P99, winner, reason))


def _memory(bench: Bench, through: Found, advice: Advice, budget: Budget, cost: float) -> None:
    wish = advice.wish
    connections = wish.connections[-1]
    tempo = pace(max(budget.left(), 0.0), cost, advice.probe.service, advice.best)
    wanted = ENOUGH * advice.best

    def rate(one: Configuration) -> float:
        return statistics.median(
            sample.rate
            for sample in bench.samples
            if sample.configuration == one
            and not sample.asked
            and sample.connections == connections
            and not sample.failure
        )

    enough: list[Configuration] = []
    for one in through.guesses:
        if one in through.failed:
            continue
        expected = rate(one) if one in through.seen else 2.718281828 ** through.expected(one)[0]
        if expected >= wanted:
            enough.append(one)
    preloaded = [
        Configuration(one.mode, one.workers, one.threads, True) for one in enough if one.workers > 1
    ]
    found = Found({k: 1 / v for k, v in prior.memory(advice.probe, [*enough, *preloaded]).items()})
    for one in enough:
        if one in through.seen:
            found.seen[one] = 1 / _pss(bench.samples, one, connections)

    def measure(one: Configuration, seconds: float, number: int | None) -> float | None:
        sample = bench.take(one, seconds, connections, "memory", number)
        if sample.failure or 0 < wish.max_memory < sample.pss or rate(one) < wanted:
            return None
        return 1 / sample.pss

    explore(measure, found, budget, 0.0, Pace(tempo.long, tempo.long, 1, cost), 0)
    leader = found.leader()
    if leader is None:
        return
    as_small = [one for one in found.seen if found.ratio(one, leader) >= 1 - TIE[MEMORY]]
    winner = min(as_small, key=lambda one: one.size)
    reason = (
        f"{_pss(bench.samples, winner, connections) / 2**20:,.1f} MiB, with "
        f"{rate(winner) / advice.best:.2f} of the best throughput "
        f"(at least {ENOUGH:.2f} is asked for)"
    )
    advice.answers.append(Answer(MEMORY, winner, reason))


def _pss(samples: Sequence[Sample], one: Configuration, connections: int) -> float:
    return statistics.median(
        sample.pss
        for sample in samples
        if sample.configuration == one and sample.pss and sample.connections == connections
    )


def _levels(bench: Bench, advice: Advice, budget: Budget, cost: float) -> None:
    """The answers under the lighter loads, as far as there is time."""
    chosen = list(dict.fromkeys(one.configuration for one in advice.answers))
    seconds = max(0.5, min(2.0, 8 * advice.probe.service))
    for connections in reversed(advice.wish.connections[:-1]):
        for one in chosen:
            if budget.left() < seconds + cost:
                return
            bench.take(one, seconds, connections, "level")


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


def _remarks(samples: Sequence[Sample]) -> list[str]:
    told = []
    limited = [one for one in samples if one.client_limits]
    if limited:
        told.append(
            f"In {len(limited)} of {len(samples)} measurements the client had no core left: there "
            "it is the client that was measured, and configurations that look alike may differ."
        )
    failed = [one for one in samples if one.failure]
    if failed:
        names = ", ".join(dict.fromkeys(one.configuration.name for one in failed))
        told.append(f"Failed, and so not advised where it did: {names}.")
    return told
