"""Injectors that are processes of our own client, each asking for one page after another."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random

from loadtests.clients.native import fetch
from loadtests.errors import ServerFailure
from loadtests.studies.scalability.injection import Injected, Injector


def inject(
    pool: ThreadPoolExecutor,
    address: str,
    port: int,
    pages: Sequence[str],
    count: int,
    requests: int,
    stagger: float,
    longest: float,
    seed: int,
    core: int | None,
) -> Injected:
    """So many injectors with so many requests each, who begin `stagger` seconds apart.

    Each request is for a page at random, on a connection of its own. Raises ServerFailure if one of
    them failed, or was too late after `longest` seconds.
    """
    begin = time.monotonic()

    def run(number: int) -> fetch.Traced:
        random = Random(seed + number)
        visits = [[random.choice(pages)] for _ in range(requests)]
        time.sleep(max(0.0, begin + number * stagger - time.monotonic()))
        return fetch.traced(port, longest, 1, visits, requests=requests, host=address, core=core)

    seen = [one.result() for one in [pool.submit(run, number) for number in range(count)]]
    for number, one in enumerate(seen, 1):
        if one.trace.failed() or one.load.requests != requests:
            kinds = ", ".join(f"{n} × {kind}" for kind, n in one.trace.failed().items())
            raise ServerFailure(
                f"injector {number} of {count}: {one.load.requests} of {requests} requests "
                f"answered ({kinds or 'too slow'})"
            )
    first = min(one.trace.began for one in seen)
    injectors = sorted((_injector(one, first) for one in seen), key=lambda one: one.began)
    whole = max(one.ended for one in injectors)
    return Injected(injectors, sum(one.load.busy * one.load.seconds for one in seen) / whole)


def _injector(seen: fetch.Traced, first: float) -> Injector:
    trace = seen.trace
    began = trace.began - first
    # One after another, so the ends are in order.
    ends = [began + end / 1e6 for end in trace.ended]
    times = [end - sent for sent, end in zip(trace.sent, trace.ended, strict=True)]
    return Injector(began, ends[-1], ends, times)
