"""Injectors: processes of our own client, or workers of Locust with one user on one connection.

Times are seconds from the beginning of the first one, response times microseconds.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import NamedTuple, TypeAlias

from loadtests.clients.load import KINDS
from loadtests.clients.locust import swarm
from loadtests.clients.native import fetch
from loadtests.errors import ServerFailure
from loadtests.servers.pages import TARGETS
from loadtests.studies import sample

LONGEST, LONGEST_OF_LOCUST = 60.0, 300.0
"""Seconds for all of them."""
SEED = 1999


@dataclass(frozen=True)
class Order:
    """`count` injectors with so many requests each, for pages at random, begin `stagger` s apart.

    Those of our own client run in threads of `pool`.
    """

    address: str
    port: int
    count: int
    requests: int
    stagger: float
    core: int | None
    pool: ThreadPoolExecutor
    targets: Sequence[str] = TARGETS


class Injector(NamedTuple):
    """From when to when it was active; the end and the response time of each of its requests."""

    began: float
    ended: float
    ends: Sequence[float]
    times: Sequence[float]


class Injected(NamedTuple):
    """All of them, from the first to the last, and how many cores they took in these seconds."""

    injectors: list[Injector]
    seconds: float
    busy: float


def processes(order: Order) -> Injected:
    """Our own client, each request on a connection of its own.

    Raises ServerFailure if a request failed, or was too late.
    """
    begin = time.monotonic()

    def run(number: int) -> fetch.Traced:
        random = Random(SEED + number)
        visits = [[random.choice(order.targets)] for _ in range(order.requests)]
        time.sleep(max(0.0, begin + number * order.stagger - time.monotonic()))
        host, core = order.address, order.core
        return fetch.traced(
            order.port, LONGEST, 1, visits, requests=order.requests, host=host, core=core
        )

    seen = list(order.pool.map(run, range(order.count)))
    injectors = []
    for number, one in enumerate(seen, 1):
        trace = one.trace
        _check(order, number, one.load.requests, trace.failed())
        # One after another, so the ends are in order.
        ends = [trace.began + end / 1e6 for end in trace.ended]
        times = [end - sent for sent, end in zip(trace.sent, trace.ended, strict=True)]
        injectors.append(Injector(trace.began, ends[-1], ends, times))
    return _together(injectors, sum(one.load.busy * one.load.seconds for one in seen))


def workers(order: Order) -> Injected:
    """Workers of Locust, which keep their connections.

    Raises ServerFailure if a request failed, and LabError if they are too late.
    """
    plan = {"seconds": 0, "targets": order.targets, "requests": order.requests, "seed": SEED}
    plan["stagger"] = order.stagger
    url, count = f"http://{order.address}:{order.port}", order.count
    outcome = swarm.run("Injector", plan, url, count, count, order.core, LONGEST_OF_LOCUST)
    injectors = []
    for number, report in enumerate(outcome.reports, 1):
        failed = Counter(KINDS[kind] for kind in report.kinds if kind)
        _check(order, number, len(report.ends) - failed.total(), failed)
        began = report.ends[0] - report.times[0] / 1e3
        times = [one * 1e3 for one in report.times]
        injectors.append(Injector(began, report.ends[-1], report.ends, times))
    return _together(injectors, outcome.cpu)


def _check(order: Order, number: int, answered: int, failed: dict[str, int]) -> None:
    if lost := sample.lost(order.requests, answered, failed):
        raise ServerFailure(f"injector {number} of {order.count}: {lost}")


def _together(injectors: Sequence[Injector], cpu: float) -> Injected:
    """In the order in which they began, with times from the first of them on."""
    first = min(one.began for one in injectors)
    shifted = [
        Injector(one.began - first, one.ended - first, [at - first for at in one.ends], one.times)
        for one in injectors
    ]
    whole = max(one.ended for one in shifted)
    return Injected(sorted(shifted, key=lambda one: one.began), whole, cpu / whole)


Phase: TypeAlias = tuple[list[int], float, int, float | None, float | None]
"""A time in which the same injectors were active: their numbers, seconds, requests, and of these
the shortest and the longest time."""


def phases(injectors: Sequence[Injector]) -> list[Phase]:
    """The phases in their order; a request belongs to the one in which it ended."""
    bounds = sorted({time for one in injectors for time in (one.began, one.ended)})
    found = []
    for begin, end in pairwise(bounds):
        active = [
            number
            for number, one in enumerate(injectors, 1)
            if one.began <= begin and one.ended >= end
        ]
        # What ends on a bound belongs to the phase before it.
        times = [
            time
            for one in injectors
            for at, time in zip(one.ends, one.times, strict=True)
            if begin < at <= end
        ]
        if active or times:
            low, high = min(times, default=None), max(times, default=None)
            found.append((active, end - begin, len(times), low, high))
    return found


def counts(one: Injector, bins: int, length: float) -> list[int]:
    """How many requests ended in each of so many equal parts of the whole length."""
    found = Counter(min(int(at / length * bins), bins - 1) for at in one.ends)
    return [found[number] for number in range(bins)]
