"""The study `power`: three injectors one after the other, then 1 to 12 at once, at each server."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from loadtests.measure import histogram
from loadtests.measure.cpu_affinity import USABLE
from loadtests.servers.pages import TARGETS, running
from loadtests.servers.registry import Server
from loadtests.servers.registry.studies import FIVE_PAGES
from loadtests.studies import sample
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.power import injectors, report
from loadtests.studies.study import QUICK, TINY, Scale, Study

NAME = "power"
OWN, LOCUST = "fetch", "locust"
INJECTORS = {OWN: injectors.processes, LOCUST: injectors.workers}
"""By the names of the option and of the records."""
REQUESTS = {OWN: 5_000, LOCUST: 1_000}
"""Of each injector. In 2005 they were 5,000; a worker of Locust needs as long for a fifth of them
as our client in C for all, and some seconds to start."""
FEWEST = 50
LEVELS: Sequence[int] = (1, 2, 3, 4, 5, 6, 9, 12)
"""Injectors that begin together."""
FEWER = {QUICK.name: (1, 2, 3, 6), TINY.name: (1, 2)}
"""Of those, with a smaller scale, if they are workers of Locust."""
MOST = 64
STAGGERED = 3
"""Injectors that begin one after the other."""
STAGGER = 1 / 16
"""They begin so far apart, of the time that one of them needs alone: in 2005 that was a second of
sixteen."""
ESTIMATE = 5
"""That time is found with a part of the requests."""
BINS = 60
APART = 1 / 5_000
"""Seconds between workers of Locust, for each request that one of them makes."""
SERVERS = (
    *("poorhttp single", "poorhttp forking 2", "poorhttp threading 8"),
    *("Apache event", "Apache prefork", "lighttpd", "nginx"),
)
ASKED_BY_LOCUST = ("poorhttp single", "poorhttp forking 2", "Apache prefork")
"""Unless others are named."""


def servers() -> Sequence[Server]:
    """Those that serve files; an application would take several times as long."""
    return [server for server in FIVE_PAGES if server.name in SERVERS]


def numbers(text: str) -> list[int]:
    found = [int(number) for number in text.split(",")]
    if not all(1 <= number <= MOST for number in found):
        raise ArgumentTypeError(f"from 1 to {MOST} injectors")
    return found


def arguments(parser: ArgumentParser) -> None:
    """Which injectors, how many, and what each of them asks."""
    parser.add_argument(
        "--injectors",
        type=numbers,
        metavar="N,N",
        help=f"how many at once (default {','.join(map(str, LEVELS))})",
    )
    parser.add_argument(
        "--by",
        choices=[LOCUST, OWN],
        default=LOCUST,
        help="workers of Locust (default), or our client in C, which asks more in less time",
    )
    parser.add_argument(
        "--requests", type=int, metavar="N", help="of each injector (with --full 1,000 or 5,000)"
    )


def plan(lab: Lab, scale: Scale, servers: Sequence[Server], options: Namespace) -> list[Step]:
    """One round: first the phases, then every number of injectors."""
    lab = replace(lab, rounds=1)
    by, levels = options.by, LEVELS
    if by == LOCUST:
        levels = FEWER.get(scale.name, LEVELS)
        servers = [one for one in servers if options.servers or one.name in ASKED_BY_LOCUST]
    requests = options.requests or max(FEWEST, round(REQUESTS[by] * scale.share))
    what = f"{NAME}, {STAGGERED} injectors in turn"
    steps = sample.rounds(lab, servers, what, partial(_take, lab, by, requests, None))
    for count in options.injectors or levels:
        what = f"{NAME}, {count} injector{'s' if count > 1 else ''}"
        steps += sample.rounds(lab, servers, what, partial(_take, lab, by, requests, count))
    return steps


def _take(
    lab: Lab, by: str, requests: int, at_once: int | None, number: int, server: Server
) -> str:
    """Starts the server, has it asked by so many injectors at once, or in turn, and stops it."""
    core = lab.client_core
    # Injectors end when they are refused, so the server ends before their threads are awaited.
    with ThreadPoolExecutor(MOST) as pool, running(server, lab.server_core) as one:
        count, targets = at_once or STAGGERED, [one.at(target) for target in TARGETS]
        order = injectors.Order(one.ip, one.port, count, requests, 0.0, core, pool, targets)
        if not at_once:
            order = replace(order, stagger=_stagger(order, by))
        before = sample.cpu_seconds(one)
        injected = INJECTORS[by](order)
        spent = sample.cpu_seconds(one) - before
    times = [time for one in injected.injectors for time in one.times]
    fields: dict[str, Any] = {"scenario": "at once"} if at_once else _in_turn(order, injected)
    Trial(lab, NAME, number, server).sample(
        requests=len(times),
        seconds=round(injected.seconds, 6),
        low_us=min(times),
        high_us=max(times),
        times=histogram.encode(histogram.record(times)),
        client_cores=1 if core is not None else len(USABLE),
        client_busy=round(injected.busy, 3),
        server_busy=round(spent / injected.seconds, 3),
        seed=injectors.SEED,
        by=by,
        injectors=order.count,
        **fields,
    )
    return f"{len(times) / injected.seconds:,.0f}/s"


def _stagger(order: injectors.Order, by: str) -> float:
    """Seconds between the beginnings of injectors."""
    if by == LOCUST:
        return order.requests * APART
    few = max(order.requests // ESTIMATE, 1)
    alone = INJECTORS[by](replace(order, count=1, requests=few))
    return alone.seconds * order.requests / few * STAGGER


def _in_turn(order: injectors.Order, injected: injectors.Injected) -> dict[str, Any]:
    return {
        "scenario": "in turn",
        "stagger_seconds": round(order.stagger, 6),
        "began": [round(one.began, 6) for one in injected.injectors],
        "ended": [round(one.ended, 6) for one in injected.injectors],
        "phases": [
            [active, round(seconds, 6), *figures]
            for active, seconds, *figures in injectors.phases(injected.injectors)
        ],
        "bin_seconds": injected.seconds / BINS,
        "counts": [injectors.counts(one, BINS, injected.seconds) for one in injected.injectors],
    }


STUDY = Study(
    NAME,
    "1 to 12 injectors at once: requests per second by active injectors, and how the time grows",
    "Uniserve, 2005",
    servers,
    plan,
    report.report,
    arguments,
    given=True,
)
