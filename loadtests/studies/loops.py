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
from loadtests.reporting.model import Axis, Cell, Column, Panels, Part, Section, Table
from loadtests.servers.pages import TARGETS, running
from loadtests.servers.registry import Server
from loadtests.servers.registry.studies import FIVE_PAGES
from loadtests.servers.running import Running
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import originals, sample, tables
from loadtests.studies.engine import Lab, Step, Trial, rounds
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
    parser.add_argument("--local", action="store_true", help="loops on this machine only (loops)")


def plan(lab: Lab, scale: Scale, chosen: Sequence[Server], options: Namespace) -> list[Step]:
    """Every way after the other, in interleaved runs."""
    lab = replace(lab, rounds=RUNS.get(scale.name, FEWEST_RUNS))
    steps = rounds(lab, NAME, chosen, partial(_take, scale=scale, way=None), " L1 to L3")
    for way, names in {} if options.local else REMOTE.items():
        asked = options.servers is not None
        those = [one for one in chosen if one.movable and (asked or one.name in names)]
        take = partial(_take, scale=scale, way=way)
        steps += rounds(lab, NAME, those, take, f" R1 to R3 {way.name}")
    return steps


def _take(trial: Trial, scale: Scale, way: Way | None) -> str:
    """Starts the server, runs its loops, and stops it."""
    requests = max(FEWEST, round(REQUESTS * scale.share))
    if way is OUTSIDE:
        requests = max(OUTSIDE_FEWEST, round(REQUESTS * scale.share * OUTSIDE_SHARE))
    with contextlib.ExitStack() as stack:
        ends = stack.enter_context(apart(way)) if way else None
        host, core = ends["server"] if ends else None, trial.lab.server_core
        one = stack.enter_context(running(trial.server, core, host))
        if ends:
            stack.enter_context(ends["client"].inside())
        _ask(trial.lab, one, [TARGETS[0]] * min(WARMING, requests))
        means = [_measure(trial, one, way, loop, requests) for loop in LOOPS]
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


def _measure(trial: Trial, one: Running, way: Way | None, loop: str, requests: int) -> float:
    """Runs a loop, stores the sample, and returns the mean of its times."""
    seed = SEED + trial.number
    targets = asked(loop, TARGETS, requests, seed)
    before = sample.cpu_seconds(one)
    seen = _ask(trial.lab, one, targets)
    spent = sample.cpu_seconds(one) - before
    times = seen.trace.total()
    apart_ones = outliers(times, targets)
    kept = sorted(apart_ones, key=lambda outlier: outlier.microseconds)[-OUTLIERS_KEPT:]
    mean = statistics.fmean(times)
    trial.sample(
        scenario=scenario(way, loop),
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
        **({} if trial.number else {"curve": curve(times, kept)}),
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
    least = max(OUTLIER_TIMES * statistics.median(times), OUTLIER_US)
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


WAYS: Sequence[Way | None] = (None, LAN, OUTSIDE)
LISTED = 40
DRAWN = 6
LOOPS = {"1": "one page", "2": "five pages, one after the other", "3": "five pages at random"}
OUTLIER_TIMES, OUTLIER_US = 10, 1_000
"""An outlier took longer than so many microseconds, and so many times the median of its run."""
OUTLIERS_KEPT = 100
MILLI = 1e-3
MEAN = "mean time of a request"
FIELDS = ("seconds", "mean_us", "min_us", "max_us")
VALUES: Sequence[tuple[Column, tables.Value]] = (
    (Column(MEAN, "ms", 3, MILLI), "mean_us"),
    (Column("shortest", "ms", 3, MILLI), "min_us"),
    (Column("longest", "ms", 2, MILLI), "max_us"),
    (Column("all requests together", "s", 3), "seconds"),
    (Column("requests", "/s"), tables.each(lambda s: s["requests"] / s["seconds"])),
    (Column("server CPU per request", "µs"), "cpu_us"),
    (Column("client busy", "%", 0, 100), "client_busy"),
    (Column("outliers"), tables.total("outliers")),
)


def scenario(way: Way | None, loop: str) -> str:
    return f"R{loop} {way.name}" if way else f"L{loop}"


def report(results: Results) -> list[Section]:
    """A section for each way, and one for what stands out and what was in 2005."""
    samples = tables.latest(results.samples)
    loops = tables.by(sorted(samples, key=lambda one: int(one["round"])), "scenario")
    sections = []
    for way in WAYS:
        own = {name: loops[name] for n in LOOPS if (name := scenario(way, n)) in loops}
        if own:
            sections.append(_section(way, own, loops.get("L1", [])))
    then = originals.section("The loops of 2005", "loops-2005", text=tables.lost(results))
    return [*sections, _apart(samples), then]


def _section(way: Way | None, loops: dict[str, list[Record]], near: Sequence[Record]) -> Section:
    end, where = (way.name.lower(), way.title) if way else ("local", "on the machine itself")
    asked = "; ".join(f"{name} {LOOPS[name[1]]} ({_asked(own)})" for name, own in loops.items())
    text = [
        "How long does a page of 8.6 KB take if requests come one after another, each on a "
        f"connection of its own? Measured {where}: {asked}."
    ]
    first, samples = next(iter(loops.items()))
    means = tables.spreads(samples, "mean_us", MILLI)
    if way:
        text.append(
            f"Client and server are network namespaces, connected by a virtual cable "
            f"of {way.rate / 1e6:g} Mbit/s "
            f"and {way.delay * 1e3:g} ms each way."
        )
        here = tables.spreads(near, "mean_us", MILLI)
        if more := [means[name].median - here[name].median for name in means if name in here]:
            most = f" to {max(more):.3f} ms" if len(more) > 1 else ""
            text.append(
                f"Compared with L1 on the machine itself, the network adds {min(more):.3f} "
                f"ms{most} to the mean of R1."
            )
    bars = tables.bars(
        f"loops-means-{end}",
        "Mean time of a request",
        Axis(MEAN, "ms", low=0),
        {name: tables.spreads(own, "mean_us", MILLI) for name, own in loops.items()},
        caption="Median of the runs; the whiskers show the lowest and the highest.",
    )
    note = (
        "Medians of the runs, lowest and highest; outliers of all runs together. Client and server "
        "take turns: the client's share of its core leaves out the time of the server, of the "
        "kernel between them, and of waiting."
    )
    parts: list[Part] = [bars, *_panels(end, loops)]
    for name, own in loops.items():
        title = f"{name}: {LOOPS[name[1]]}"
        parts += tables.percentiles(f"loops-{_file(name)}", own, "times")
        parts.append(tables.compared(f"loops-{_file(name)}", title, own, VALUES, MEAN, note=note))
    parts += [_runs(name, own) for name, own in loops.items()]
    said = tables.answer(f"{MEAN.capitalize()} in {first}", means, "ms")
    return Section(f"Loops {where}", text, parts, said)


def _asked(samples: Sequence[Record]) -> str:
    requests = sorted({int(s["requests"]) for s in samples})
    runs = 1 + max(int(s["round"]) for s in samples)
    return f"{' or '.join(f'{n:,}' for n in requests)} requests, {runs} run{'s'[: runs - 1]}"


def _runs(name: str, samples: Sequence[Record]) -> Table:
    rows: list[list[Cell]] = []
    own = tables.by_server(samples)
    for server in tables.ranked(tables.spreads(samples, "mean_us"), own):
        values = [[float(run[field]) for field in FIELDS] for run in own[server]]
        for run, value in zip(own[server], values, strict=True):
            rows.append([server, f"{name} – {run['round'] + 1}", *value])
        rows.append([server, "mean", *map(statistics.fmean, zip(*values, strict=True))])
    columns = [Column("server"), Column("run"), Column("all requests together", "s", 4)]
    columns += [Column(one, "ms", 4, MILLI) for one in (MEAN, "shortest", "longest")]
    return tables.table(f"loops-{_file(name)}-runs", f"{name}: every run", columns, rows)


def _panels(end: str, loops: dict[str, list[Record]]) -> list[Panels]:
    panels = []
    for name, samples in loops.items():
        curves = {s["server"]: s["curve"] for s in reversed(samples) if "curve" in s}
        drawn = _drawn(list(tables.by_server(samples)))
        shown = {server: curves[server] for server in drawn if server in curves}
        if shown:
            x, y = Axis("Request", low=0), Axis("Time", "ms", log=True)
            panels.append(tables.lines(f"loops-times-{_file(name)}", name, x, y, shown, MILLI))
    caption = (
        "The first run. A point is the median of neighbours, so that there are no more than 250, "
        f"and every outlier (up to the {OUTLIERS_KEPT} longest) is one of its own."
    )
    title = "Time of each request in its order"
    return [Panels(f"loops-times-{end}", title, panels, caption=caption)] if panels else []


def _drawn(servers: Sequence[str]) -> list[str]:
    """Not more than can be told apart: the first of each kind, then the next in the order."""
    first = {server.split()[0]: server for server in reversed(servers)}.values()
    chosen = sorted(servers, key=lambda server: server not in first)[:DRAWN]
    return [server for server in servers if server in chosen]


def _apart(samples: Sequence[Record]) -> Section:
    found = [(one, *outlier) for one in samples for outlier in one["apart"]]
    count, requests = (sum(int(s[field]) for s in samples) for field in ("outliers", "requests"))
    longest = sorted(found, key=lambda of: -float(of[2]))[:LISTED]
    text = [
        f"An outlier is a request that took more than {OUTLIER_TIMES} times the median of its run, "
        f"and more than {OUTLIER_US * MILLI:g} ms."
        + (f" The {len(longest)} longest are listed." if count > len(longest) else "")
    ]
    rows: list[list[Cell]] = []
    for one, number, time, target in longest:
        run, medians = f"{one['scenario']} – {one['round'] + 1}", time / one["p50_us"]
        rows.append([one["server"], run, float(number), target, float(time), medians])
    times = Column("time", "ms", 2, MILLI), Column("medians of its run", "", 1)
    columns = ("server", "run", "number of the request", "target", *times)
    parts = [tables.table("loops-outliers", "Outliers", columns, rows)] if rows else []
    said = f"There are {count:,} outliers among {requests:,} requests."
    return Section("Requests that stand out", text, parts, said)


def _file(name: str) -> str:
    return name.lower().replace(" ", "-")


STUDY = Study(
    NAME,
    "pages in a loop, a connection for each: on one machine, in a network and from outside",
    "Uniserve, 2005",
    lambda: FIVE_PAGES,
    plan,
    report,
    arguments,
    given=True,
)
