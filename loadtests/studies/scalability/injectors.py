"""Injectors: processes of our own client, or workers of Locust with one user on one connection."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random

from loadtests.clients.load import KINDS
from loadtests.clients.locust import swarm
from loadtests.clients.locust.injection import INJECTOR
from loadtests.clients.native import fetch
from loadtests.errors import ServerFailure
from loadtests.studies.scalability.injection import Injected, Injector


@dataclass(frozen=True)
class Order:
    """`count` injectors with so many requests each, for pages at random, begin `stagger` s apart.

    They are given up after `longest` seconds.
    """

    address: str
    port: int
    pages: Sequence[str]
    count: int
    requests: int
    stagger: float
    longest: float
    seed: int
    core: int | None


def processes(pool: ThreadPoolExecutor, order: Order) -> Injected:
    """Our own client, each request on a connection of its own.

    Raises ServerFailure if a request failed, or was too late.
    """
    begin = time.monotonic()

    def run(number: int) -> fetch.Traced:
        random = Random(order.seed + number)
        visits = [[random.choice(order.pages)] for _ in range(order.requests)]
        time.sleep(max(0.0, begin + number * order.stagger - time.monotonic()))
        return fetch.traced(
            order.port,
            order.longest,
            1,
            visits,
            requests=order.requests,
            host=order.address,
            core=order.core,
        )

    seen = [one.result() for one in [pool.submit(run, number) for number in range(order.count)]]
    for number, one in enumerate(seen, 1):
        _check(order, number, one.load.requests, one.trace.failed())
    injectors = []
    for trace in (one.trace for one in seen):
        # One after another, so the ends are in order.
        ends = [trace.began + end / 1e6 for end in trace.ended]
        times = [end - sent for sent, end in zip(trace.sent, trace.ended, strict=True)]
        injectors.append(Injector(trace.began, ends[-1], ends, times))
    return _together(injectors, sum(one.load.busy * one.load.seconds for one in seen))


def workers(order: Order) -> Injected:
    """Workers of Locust, which keep their connections.

    Raises ServerFailure if a request failed, and LabError if they are too late.
    """
    plan = {
        "seconds": 0,
        "targets": list(order.pages),
        "requests": order.requests,
        "stagger": order.stagger,
        "seed": order.seed,
    }
    url = f"http://{order.address}:{order.port}"
    count = order.count
    outcome = swarm.run([INJECTOR], plan, url, count, count, order.core, order.longest)
    injectors = []
    for number, report in enumerate(outcome.reports, 1):
        kinds = [KINDS[kind] for kind in report.kinds if kind]
        failed = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
        _check(order, number, len(report.ends) - len(kinds), failed)
        began = report.ends[0] - report.times[0] / 1e3
        times = [one * 1e3 for one in report.times]
        injectors.append(Injector(began, report.ends[-1], report.ends, times))
    return _together(injectors, outcome.cpu)


def _check(order: Order, number: int, answered: int, failed: Mapping[str, int]) -> None:
    if failed or answered != order.requests:
        kinds = ", ".join(f"{count} × {kind}" for kind, count in failed.items()) or "too slow"
        raise ServerFailure(
            f"injector {number} of {order.count}: {answered} of {order.requests} requests "
            f"answered ({kinds})"
        )


def _together(injectors: Sequence[Injector], cpu: float) -> Injected:
    """In the order in which they began, with times from the first of them on."""
    first = min(one.began for one in injectors)
    shifted = [
        Injector(one.began - first, one.ended - first, [at - first for at in one.ends], one.times)
        for one in injectors
    ]
    whole = max(one.ended for one in shifted)
    return Injected(sorted(shifted, key=lambda one: one.began), cpu / whole)
