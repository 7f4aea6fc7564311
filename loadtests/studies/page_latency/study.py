"""The study `loops`: every server in every run, three loops each, over every network."""

from __future__ import annotations

import argparse
import contextlib
import statistics
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from loadtests.clients.native import fetch
from loadtests.errors import ServerFailure
from loadtests.measure import histogram, sampler
from loadtests.servers.pages import TARGETS
from loadtests.servers.registry import Server
from loadtests.servers.registry.uniserve import running, servers
from loadtests.servers.running import Running
from loadtests.studies import sample
from loadtests.studies.engine import Lab, Step
from loadtests.studies.page_latency import report
from loadtests.studies.page_latency.report import scenario
from loadtests.studies.page_latency.times import LOOPS, OUTLIERS_KEPT, asked, curve, outliers
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


def arguments(parser: argparse.ArgumentParser) -> None:
    """Where the loops run."""
    parser.add_argument("--local", action="store_true", help="loops on this machine only (loops)")


def plan(
    lab: Lab, scale: Scale, chosen: Sequence[Server], options: argparse.Namespace
) -> list[Step]:
    """Every way after the other, in interleaved runs."""
    lab = replace(lab, rounds=RUNS.get(scale.name, FEWEST_RUNS))
    steps = _steps(lab, scale, chosen, None)
    if getattr(options, "local", False):
        return steps
    for way, names in REMOTE.items():
        wanted = getattr(options, "servers", None) is not None
        those = [server for server in chosen if wanted or server.name in names]
        steps += _steps(lab, scale, those, way)
    return steps


def _steps(lab: Lab, scale: Scale, chosen: Sequence[Server], way: Way | None) -> list[Step]:
    what = f"{NAME} R1 to R3 {way.name}" if way else f"{NAME} L1 to L3"
    return sample.rounds(lab, chosen, what, partial(_take, lab, scale, way), "run")


def _requests(scale: Scale, way: Way | None) -> int:
    if way is OUTSIDE:
        return max(OUTSIDE_FEWEST, round(REQUESTS * scale.share * OUTSIDE_SHARE))
    return max(FEWEST, round(REQUESTS * scale.share))


def _take(lab: Lab, scale: Scale, way: Way | None, number: int, server: Server) -> str:
    """Starts the server, runs its loops, and stops it."""
    said = []
    with contextlib.ExitStack() as stack:
        ends = stack.enter_context(apart(way)) if way else None
        one = stack.enter_context(running(server, lab.server_core, ends.server if ends else None))
        if ends:
            stack.enter_context(ends.client.inside())
        _ask(lab, one, [TARGETS[0]] * min(WARMING, _requests(scale, way)))
        for loop in LOOPS:
            seed = SEED + number
            targets = asked(loop, TARGETS, _requests(scale, way), seed)
            mean = _measure(lab, number, one, way, loop, targets, seed)
            said.append(f"{mean:,.0f}")
    return f"{', '.join(said)} µs"


def _ask(lab: Lab, one: Running, targets: Sequence[str]) -> fetch.Traced:
    """Asks for them. Raises ServerFailure if it did not get them all."""
    seen = fetch.traced(
        one.port,
        LONGEST,
        1,
        [[target] for target in targets],
        requests=len(targets),
        host=one.ip,
        core=lab.client_core,
    )
    failed = seen.trace.failed()
    if failed or seen.load.requests != len(targets):
        kinds = ", ".join(f"{count} × {kind}" for kind, count in failed.items()) or "too slow"
        raise ServerFailure(
            f"{seen.load.requests} of {len(targets)} requests answered ({kinds}): "
            f"{one.last_words()}"
        )
    return seen


def _measure(
    lab: Lab,
    number: int,
    one: Running,
    way: Way | None,
    loop: str,
    targets: Sequence[str],
    seed: int,
) -> float:
    before = sampler.spent(one.processes())
    seen = _ask(lab, one, targets)
    spent = sampler.spent(one.processes()) - before
    times = seen.trace.total()
    apart_ones = outliers(times, targets)
    kept = sorted(apart_ones, key=lambda outlier: outlier.microseconds)[-OUTLIERS_KEPT:]
    mean = statistics.fmean(times)
    sample.store(
        lab,
        NAME,
        one.server,
        number,
        scenario=scenario(way, loop),
        requests=len(times),
        seconds=seen.trace.seconds,
        octets=seen.load.octets,
        mean_us=round(mean, 1),
        min_us=min(times),
        max_us=max(times),
        p50_us=statistics.median(times),
        times=histogram.encode(seen.trace.histogram()),
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


STUDY = Study(
    NAME,
    "pages in a loop, each on a connection of its own: here, in a network and from outside of it",
    "Uniserve, 2005",
    servers,
    plan,
    report.report,
    arguments,
)
