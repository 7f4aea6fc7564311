"""The study `loops`: how long one client waits for each page when it asks for one after another."""

from __future__ import annotations

import contextlib
import statistics
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import NamedTuple

from loadtests.clients.native import fetch
from loadtests.errors import ServerFailure
from loadtests.measure import histogram
from loadtests.servers.pages import TARGETS, running
from loadtests.servers.registry import Server
from loadtests.servers.registry.studies import FIVE_PAGES
from loadtests.servers.running import Running
from loadtests.studies import sample
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.loops import report
from loadtests.studies.remote import LAN, OUTSIDE, Way, apart
from loadtests.studies.study import FULL, QUICK, Scale, Study

NAME = "loops"
REQUESTS = 1_000
"""Of a run; of each page in the second loop."""
RUNS = {FULL.name: 5, QUICK.name: 3}
FEWEST_RUNS = 2
FEWEST = 10
OUTSIDE_SHARE, OUTSIDE_FEWEST = 0.01, 5
"""From outside most of the time is spent waiting for the line, whoever serves."""
REMOTE = {
    LAN: ("poorhttp single", "Apache prefork", "nginx"),
    OUTSIDE: ("poorhttp single", "Apache prefork"),
}
"""Who is asked from elsewhere unless somebody says whom he wants."""
WARMING = 20
LONGEST = 60.0
"""Seconds for a loop."""
SEED = 2005
POINTS = 250


class Outlier(NamedTuple):
    """The number of a request, from 1, its microseconds and what it asked for."""

    number: int
    microseconds: float
    target: str


def arguments(parser: ArgumentParser) -> None:
    """Where the loops run."""
    parser.add_argument("--local", action="store_true", help="loops on this machine only (loops)")


def plan(lab: Lab, scale: Scale, chosen: Sequence[Server], options: Namespace) -> list[Step]:
    """Every way after the other, in interleaved runs."""
    lab = replace(lab, rounds=RUNS.get(scale.name, FEWEST_RUNS))
    steps = sample.rounds(lab, chosen, f"{NAME} L1 to L3", partial(_take, lab, scale, None), "run")
    for way, names in {} if options.local else REMOTE.items():
        asked = options.servers is not None
        those = [one for one in chosen if one.movable and (asked or one.name in names)]
        what = f"{NAME} R1 to R3 {way.name}"
        steps += sample.rounds(lab, those, what, partial(_take, lab, scale, way), "run")
    return steps


def _take(lab: Lab, scale: Scale, way: Way | None, number: int, server: Server) -> str:
    """Starts the server, runs its loops, and stops it."""
    requests = max(FEWEST, round(REQUESTS * scale.share))
    if way is OUTSIDE:
        requests = max(OUTSIDE_FEWEST, round(REQUESTS * scale.share * OUTSIDE_SHARE))
    with contextlib.ExitStack() as stack:
        ends = stack.enter_context(apart(way)) if way else None
        one = stack.enter_context(running(server, lab.server_core, ends.server if ends else None))
        if ends:
            stack.enter_context(ends.client.inside())
        _ask(lab, one, [TARGETS[0]] * min(WARMING, requests))
        means = [_measure(lab, number, one, way, loop, requests) for loop in report.LOOPS]
    return f"{', '.join(f'{mean:,.0f}' for mean in means)} µs"


def _ask(lab: Lab, one: Running, targets: Sequence[str]) -> fetch.Traced:
    """Asks for them. Raises ServerFailure if it did not get them all."""
    visits, requests = [[one.at(target)] for target in targets], len(targets)
    seen = fetch.traced(
        one.port, LONGEST, 1, visits, requests=requests, host=one.ip, core=lab.client_core
    )
    if lost := sample.lost(requests, seen.load.requests, seen.trace.failed()):
        raise ServerFailure(f"{lost}: {one.last_words()}")
    return seen


def _measure(
    lab: Lab, number: int, one: Running, way: Way | None, loop: str, requests: int
) -> float:
    """Runs a loop, stores the sample, and returns the mean of its times."""
    seed = SEED + number
    targets = asked(loop, TARGETS, requests, seed)
    before = sample.cpu_seconds(one)
    seen = _ask(lab, one, targets)
    spent = sample.cpu_seconds(one) - before
    times = seen.trace.total()
    apart_ones = outliers(times, targets)
    kept = sorted(apart_ones, key=lambda outlier: outlier.microseconds)[-report.OUTLIERS_KEPT :]
    mean = statistics.fmean(times)
    Trial(lab, NAME, number, one.server).sample(
        scenario=report.scenario(way, loop),
        requests=len(times),
        seconds=seen.trace.seconds,
        octets=seen.load.octets,
        mean_us=round(mean, 1),
        min_us=min(times),
        max_us=max(times),
        p50_us=statistics.median(times),
        times=histogram.encode(histogram.record(times)),
        outliers=len(apart_ones),
        apart=sorted(kept),
        # One run of a server is drawn.
        **({} if number else {"curve": curve(times, kept)}),
        cpu_us=round(spent / len(times) * 1e6, 1),
        client_busy=round(seen.load.busy, 3),
        seed=seed,
        **({"rate_bits": way.rate, "delay_seconds": way.delay} if way else {}),
    )
    return mean


def asked(loop: str, pages: Sequence[str], requests: int, seed: int) -> list[str]:
    """What a loop asks for: so many requests, in the second loop of each page."""
    if loop == "1":
        return [pages[0]] * requests
    if loop == "2":
        return [page for page in pages for _ in range(requests)]
    random = Random(seed)
    return [random.choice(pages) for _ in range(requests)]


def outliers(times: Sequence[float], targets: Sequence[str]) -> list[Outlier]:
    """Requests that stand out, in their order."""
    least = max(report.OUTLIER_TIMES * statistics.median(times), report.OUTLIER_US)
    requests = enumerate(zip(times, targets, strict=True), 1)
    return [Outlier(number, time, target) for number, (time, target) in requests if time > least]


def curve(times: Sequence[float], apart: Sequence[Outlier]) -> list[tuple[int, float]]:
    """Number and microseconds for at most POINTS and the outliers.

    A point is the median of some requests that follow each other, outliers left out.
    """
    known = {number: time for number, time, _ in apart}
    usual = [(number, time) for number, time in enumerate(times, 1) if number not in known]
    each = max(-(-len(usual) // POINTS), 1)
    groups = [usual[start : start + each] for start in range(0, len(usual), each)]
    middles = [(one[len(one) // 2][0], statistics.median(t for _, t in one)) for one in groups]
    return sorted([*middles, *known.items()])


STUDY = Study(
    NAME,
    "pages in a loop, a connection for each: on one machine, in a network and from outside",
    "Uniserve, 2005",
    lambda: FIVE_PAGES,
    plan,
    report.report,
    arguments,
    given=True,
)
