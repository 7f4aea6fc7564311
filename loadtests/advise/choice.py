"""The recommendation: which configuration, what limits it, and the cost of another or a larger one.

Sentences for people; the figures are those of `answer`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from loadtests.advise import prior
from loadtests.advise.answer import ENOUGH, OTHERS, P99, THROUGHPUT, Advice
from loadtests.advise.configuration import THREADS, Configuration
from loadtests.advise.prior import COMPUTING
from loadtests.clients.load import SATURATED

BUSY = 0.8
"""Share of the cores that are there from which on they are the limit."""
SLOWER = 1.5
"""How many times longer a request takes under load before what it waits for is the limit."""
DEARER = 1.4
"""How many times the CPU time of a request with more threads tells of Python's lock."""
CALM = 1.25
"""How many times the best p99 is good enough for the recommendation."""
HEADROOM = 1.5
"""How many times a given rate the recommendation has to be able to do, if anything can."""


def recommended(advice: Advice) -> Configuration:
    """The smallest with nearly the best throughput (or enough for the rate asked for) and p99."""
    if len(advice.wish.aims) == 1 and advice.answers:
        return advice.answers[0].configuration
    through, late = advice.found[THROUGHPUT], advice.found.get(P99)
    leader = through.leader()
    assert leader is not None
    wanted = min(ENOUGH * advice.best, HEADROOM * (advice.wish.rate or math.inf))
    able = [
        one for one in through.seen if one not in through.failed and through.score(one) >= wanted
    ] or [leader]
    known = [one for one in able if late and late.score(one) and one not in late.failed]
    if late and known:
        calmest = max(known, key=late.score)
        able = [
            one for one in known if late.ratio(one, calmest) >= 1 / CALM or late.alike(one, calmest)
        ]
    return min(able, key=lambda one: one.size)


def limit(advice: Advice, chosen: Configuration) -> tuple[str, str]:
    """What limits a configuration (a word), and the sentence that says so."""
    wish, probe = advice.wish, advice.probe
    cores, connections = wish.cores, wish.connections[-1]
    rate, client = advice.median(chosen, "rate"), advice.median(chosen, "client_busy")
    used = rate * advice.median(chosen, "cpu_us") / 1e6
    wanted = used + rate * advice.median(chosen, "delayed_us") / 1e6
    others = advice.median(chosen, "others_busy") * cores
    if wish.max_memory and (larger := _too_large(advice)):
        return "memory", (
            f"memory: {larger[0]} does {larger[1] / rate:.1f} × as much, but takes "
            f"{larger[2] / 2**20:,.0f} MiB, more than the {wish.max_memory / 2**20:,.0f} allowed."
        )
    if client >= SATURATED:
        return "the client", (
            "the client that measures: it had no core left, so the application can do more than "
            "could be measured here."
        )
    if wanted >= BUSY * (cores - client) or used >= BUSY * (cores - client - others):
        text = f"computing: {used:.1f} of {cores} cores work for the application"
        text += f", {client:.1f} for the client that measures" if client >= 0.1 else ""
        text += f", {others:.1f} for something else" if others >= OTHERS * cores else ""
        return "computing", f"{text}. More needs more cores, or less work for each request."
    if used >= BUSY * chosen.workers:
        return "the lock", (
            "Python's lock: each process computes on one core at a time, so that "
            f"{cores - chosen.workers} of {cores} cores are idle. More needs more workers."
        )
    inside = min(connections, chosen.at_once)
    alone, loaded = probe.service * 1e3, inside / max(rate, 1e-9) * 1e3
    if loaded > SLOWER * alone and probe.kind != COMPUTING:
        return "waiting", (
            f"waiting for something that gets slower: {alone:,.1f} ms alone, {loaded:,.0f} ms with "
            f"{inside:.0f} requests at once, while {used:.1f} of {cores} cores compute. A "
            "database, its lock, or another server: no configuration of poorhttp mends that."
        )
    if loaded > SLOWER * alone:
        return "the lock", (
            f"a lock: {inside:.0f} requests at once take {loaded:,.1f} ms each instead of "
            f"{alone:,.1f}, while only {used:.1f} of {cores} cores compute. Python's own, that of "
            "a database, or one of the application."
        )
    if chosen.at_once < connections:
        return "waiting", (
            f"waiting: all {inside:.0f} threads wait most of the time. More threads do more "
            "(--max-threads)."
        )
    return "waiting", (
        f"waiting: all {connections} connections of this test wait for the application, which "
        "itself waits. More clients would get more (--connections)."
    )


def _too_large(advice: Advice) -> tuple[str, float, int] | None:
    """The best that takes more memory than is allowed, if it is better than all that do not."""
    larger = [
        (one.configuration.name, one.rate, one.pss)
        for one in advice.samples
        if one.pss > advice.wish.max_memory and not one.asked and one.rate > advice.best
    ]
    return max(larger, key=lambda one: one[1], default=None)


def crowding(advice: Advice) -> str:
    """What more threads cost in computing, if that can be seen; a sentence or nothing."""
    seen: dict[int, dict[int, float]] = {}
    for one in advice.found[THROUGHPUT].seen:
        if one.mode == "threading":
            seen.setdefault(one.workers, {})[one.threads] = advice.median(one, "cpu_us")
    for _, costs in sorted(seen.items()):
        few, many = min(costs), max(costs)
        if costs[few] and costs[many] >= DEARER * costs[few]:
            return (
                f"With {many} threads a request takes {costs[many] / 1e3:,.1f} ms of computing, "
                f"with {few} only {costs[few] / 1e3:,.1f}: threads that compute wait for Python's "
                "lock."
            )
    return ""


def others(advice: Advice, chosen: Configuration) -> Iterator[tuple[Configuration, str]]:
    """The other answers, and in words what it costs to take them instead."""
    aims: dict[Configuration, list[str]] = {}
    for answer in advice.answers:
        if answer.configuration != chosen:
            aims.setdefault(answer.configuration, []).append(answer.aim)
    for one, which in aims.items():
        yield one, f"for {' and '.join(which)}: {against(advice, one, chosen)}"


def against(advice: Advice, one: Configuration, chosen: Configuration) -> str:
    """How one differs from the recommendation, as far as it can be told."""
    told = []
    for aim, at_rate, value, unit, scale in (
        (THROUGHPUT, False, "rate", "requests/s", 1.0),
        (P99, True, "p99_us", "ms p99", 1e-3),
    ):
        found = advice.found.get(aim)
        new = advice.median(one, value, at_rate=at_rate) * scale
        old = advice.median(chosen, value, at_rate=at_rate) * scale
        if found is None or not new or not old:
            continue
        places = 0 if aim == THROUGHPUT or old >= 100 else 1
        if {one, chosen} <= set(found.guesses) and found.alike(one, chosen):
            told.append(f"{unit} not told apart")
        else:
            told.append(f"{new:,.{places}f} {unit} instead of {old:,.{places}f}")
    more = (memory(advice, one) - memory(advice, chosen)) / 2**20
    told.append(f"{abs(more):,.0f} MiB {'more' if more > 0 else 'less'}")
    return ", ".join(told)


def memory(advice: Advice, one: Configuration) -> float:
    """PSS in bytes, as measured under full load or else at the rate."""
    return advice.median(one, "pss") or advice.median(one, "pss", at_rate=True)


def step(advice: Advice, chosen: Configuration) -> str:
    """What the next larger configuration costs and brings, measured if it was, else expected."""
    wish, found = advice.wish, advice.found[THROUGHPUT]
    limited, _ = limit(advice, chosen)
    cores = wish.cores
    if limited == "waiting" and chosen.mode == "threading" and chosen.threads < THREADS[-1]:
        larger = replace(chosen, threads=2 * chosen.threads)
    elif chosen.mode == "single":
        larger = Configuration("forking", 2)
    else:
        larger = replace(chosen, workers=chosen.workers + 1)
    more_cores = larger.workers > cores and (limited != "waiting" or larger.mode != "forking")
    if more_cores:
        cores = larger.workers
    rate, pss = advice.median(larger, "rate"), advice.median(larger, "pss")
    how = "measured"
    if not rate or more_cores:
        connections = wish.connections[-1]
        guessed = prior.throughput(advice.probe, [chosen], connections, wish.cores)[chosen]
        grown = prior.throughput(advice.probe, [larger], connections, cores)[larger]
        rate, how = found.score(chosen) * grown / guessed, "expected"
        sizes = prior.memory(advice.probe, [chosen, larger])
        pss = advice.median(chosen, "pss") + sizes[larger] - sizes[chosen]
    now = advice.median(chosen, "rate")
    on = f" on {cores} cores" if more_cores else ""
    gain = rate / now if now else math.nan
    return (
        f"{larger.name}{on}: {(pss - advice.median(chosen, 'pss')) / 2**20:+,.0f} MiB for "
        f"{gain:.2f} × the requests/s ({how})."
        + ("" if not more_cores else " On this machine its cores are the limit, not workers.")
    )
