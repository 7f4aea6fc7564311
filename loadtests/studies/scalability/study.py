"""The study `power`: three injectors one after the other, then 1 to 12 at once, at each server."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from loadtests.measure import histogram, sampler
from loadtests.measure.cpu_affinity import USABLE
from loadtests.servers.pages import TARGETS
from loadtests.servers.registry import Server, uniserve
from loadtests.servers.running import Running
from loadtests.studies import sample
from loadtests.studies.engine import Lab, Step
from loadtests.studies.scalability import injectors, report
from loadtests.studies.scalability.injection import Injected, counts, phases
from loadtests.studies.study import QUICK, TINY, Scale, Study

NAME = "power"
OWN, LOCUST = "fetch", "locust"
"""Who the injectors are."""
REQUESTS = {OWN: 5_000, LOCUST: 1_000}
"""Of each injector. In 2005 they were 5,000; a worker of Locust needs as long for a fifth of them
as our client in C for all, and some seconds to start."""
FEWEST = 50
LEVELS = (1, 2, 3, 4, 5, 6, 9, 12)
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
ROUNDS = 1
LONGEST = {OWN: 60.0, LOCUST: 300.0}
"""Seconds for all of them."""
APART = 1 / 5_000
"""Seconds between workers of Locust, for each request that one of them makes."""
SEED = 1999
SERVERS = (
    *("poorhttp single", "poorhttp forking 2", "poorhttp threading 8"),
    *("Apache event", "Apache prefork", "lighttpd", "nginx"),
)
ASKED_BY_LOCUST = ("poorhttp single", "poorhttp forking 2", "Apache prefork")
"""Unless others are named."""


def servers() -> Sequence[Server]:
    """Those that serve files; an application would take several times as long."""
    return [server for server in uniserve.servers() if server.name in SERVERS]


def numbers(text: str) -> list[int]:
    found = [int(number) for number in text.split(",")]
    if not all(1 <= number <= MOST for number in found):
        raise argparse.ArgumentTypeError(f"from 1 to {MOST} injectors")
    return found


def arguments(parser: argparse.ArgumentParser) -> None:
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


def plan(
    lab: Lab, scale: Scale, servers: Sequence[Server], options: argparse.Namespace
) -> list[Step]:
    """One round: first the phases, then every number of injectors."""
    lab = replace(lab, rounds=ROUNDS)
    by = getattr(options, "by", LOCUST)
    levels = FEWER.get(scale.name, LEVELS) if by == LOCUST else LEVELS
    if by == LOCUST and not getattr(options, "servers", None):
        servers = [server for server in servers if server.name in ASKED_BY_LOCUST]
    asked = getattr(options, "requests", None)
    requests = asked or max(FEWEST, round(REQUESTS[by] * scale.share))
    steps = _steps(lab, servers, f"{STAGGERED} injectors in turn", requests, by, _staggered)
    for count in getattr(options, "injectors", None) or levels:
        what = f"{count} injector{'s' if count > 1 else ''}"
        steps += _steps(lab, servers, what, requests, by, partial(_at_once, count))
    return steps


class Target:
    """A running server, and who may ask it; `spent` is its CPU time of the last time."""

    def __init__(self, lab: Lab, pool: ThreadPoolExecutor, running: Running, by: str) -> None:
        self.running = running
        self.by = by
        self._lab = lab
        self._pool = pool
        self.spent = 0.0

    def inject(self, count: int, requests: int, stagger: float = 0.0) -> Injected:
        """Has it asked. Raises ServerFailure if not all is answered."""
        running, core = self.running, self._lab.client_core
        before = sampler.spent(running.processes())
        longest = LONGEST[self.by]
        order = injectors.Order(
            *(running.ip, running.port, TARGETS, count, requests, stagger, longest, SEED, core)
        )
        if self.by == LOCUST:
            injected = injectors.workers(order)
        else:
            injected = injectors.processes(self._pool, order)
        self.spent = sampler.spent(self.running.processes()) - before
        return injected


Action = Callable[[Target, int], tuple[dict[str, Any], Injected]]


def _steps(
    lab: Lab, servers: Sequence[Server], what: str, requests: int, by: str, action: Action
) -> list[Step]:
    def take(number: int, server: Server) -> str:
        with contextlib.ExitStack() as stack:
            # Its injectors end when they are refused, so the server ends first.
            pool = stack.enter_context(ThreadPoolExecutor(MOST))
            one = stack.enter_context(uniserve.running(server, lab.server_core))
            target = Target(lab, pool, one, by)
            fields, injected = action(target, requests)
        times = [time for one in injected.injectors for time in one.times]
        sample.store(
            lab,
            NAME,
            server,
            number,
            requests=injected.requests,
            seconds=round(injected.seconds, 6),
            low_us=min(times),
            high_us=max(times),
            times=histogram.encode(histogram.record(times)),
            client_cores=1 if lab.client_core is not None else len(USABLE),
            client_busy=round(injected.busy, 3),
            server_busy=round(target.spent / injected.seconds, 3),
            seed=SEED,
            by=by,
            **fields,
        )
        return f"{injected.requests / injected.seconds:,.0f}/s"

    return sample.rounds(lab, servers, f"{NAME}, {what}", take)


def _at_once(count: int, target: Target, requests: int) -> tuple[dict[str, Any], Injected]:
    injected = target.inject(count, requests)
    return {"scenario": "at once", "injectors": count}, injected


def _staggered(target: Target, requests: int) -> tuple[dict[str, Any], Injected]:
    if target.by == LOCUST:
        stagger = requests * APART
    else:
        few = max(requests // ESTIMATE, 1)
        stagger = target.inject(1, few).seconds * requests / few * STAGGER
    injected = target.inject(STAGGERED, requests, stagger)
    whole = injected.seconds
    fields: dict[str, Any] = {
        "scenario": "in turn",
        "injectors": STAGGERED,
        "stagger_seconds": round(stagger, 6),
        "began": [round(one.began, 6) for one in injected.injectors],
        "ended": [round(one.ended, 6) for one in injected.injectors],
        "phases": [
            [list(phase.injectors), round(phase.seconds, 6), *phase[2:]]
            for phase in phases(injected.injectors)
        ],
        "bin_seconds": whole / BINS,
        "counts": [counts(one, BINS, whole) for one in injected.injectors],
    }
    return fields, injected


STUDY = Study(
    NAME,
    "1 to 12 injectors at once: requests per second by active injectors, and how the time grows",
    "Uniserve, 2005",
    servers,
    plan,
    report.report,
    arguments,
)
