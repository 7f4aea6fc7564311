"""The study `power`: three injectors one after the other, then 1 to 12 at once, at each server.

An injector is a process of our own client, or a worker of Locust with one user on one connection.
Times of injectors are seconds from the beginning of the first one, response times microseconds.
"""

from __future__ import annotations

import statistics
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple, TypeAlias

from loadtests.clients.load import KINDS, SATURATED
from loadtests.clients.locust import swarm
from loadtests.clients.native import fetch
from loadtests.errors import ServerFailure
from loadtests.measure import histogram
from loadtests.measure.cpu_affinity import USABLE
from loadtests.reporting.model import Axis, Cell, Column, Line, Lines, Panels, Section, Table
from loadtests.servers.pages import TARGETS, running
from loadtests.servers.registry import Server
from loadtests.servers.registry.studies import FIVE_PAGES
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import originals, sample, tables
from loadtests.studies.engine import Lab, Step, Trial, rounds
from loadtests.studies.study import QUICK, TINY, Scale, Study

NAME = "power"
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


OWN, LOCUST = "fetch", "locust"
INJECTORS = {OWN: processes, LOCUST: workers}
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
    steps = []
    for count in (None, *(options.injectors or levels)):
        take = partial(_take, by=by, requests=requests, at_once=count)
        words = f"{count} injector{'s' if count > 1 else ''}" if count else "injectors in turn"
        steps += rounds(lab, NAME, servers, take, f", {words}")
    return steps


def _take(trial: Trial, by: str, requests: int, at_once: int | None) -> str:
    """Starts the server, has it asked by so many injectors at once, or in turn, and stops it."""
    lab, core = trial.lab, trial.lab.client_core
    # Injectors end when they are refused, so the server ends before their threads are awaited.
    with ThreadPoolExecutor(MOST) as pool, running(trial.server, lab.server_core) as one:
        count, targets = at_once or STAGGERED, [one.at(target) for target in TARGETS]
        order = Order(one.ip, one.port, count, requests, 0.0, core, pool, targets)
        if not at_once:
            order = replace(order, stagger=_stagger(order, by))
        before = sample.cpu_seconds(one)
        injected = INJECTORS[by](order)
        spent = sample.cpu_seconds(one) - before
    times = [time for one in injected.injectors for time in one.times]
    fields: dict[str, Any] = {"scenario": "at once"} if at_once else _in_turn(order, injected)
    trial.sample(
        requests=len(times),
        seconds=round(injected.seconds, 6),
        low_us=min(times),
        high_us=max(times),
        times=histogram.encode(histogram.record(times)),
        client_cores=1 if core is not None else len(USABLE),
        client_busy=round(injected.busy, 3),
        server_busy=round(spent / injected.seconds, 3),
        seed=SEED,
        by=by,
        injectors=order.count,
        **fields,
    )
    return f"{len(times) / injected.seconds:,.0f}/s"


def _stagger(order: Order, by: str) -> float:
    """Seconds between the beginnings of injectors."""
    if by == LOCUST:
        return order.requests * APART
    few = max(order.requests // ESTIMATE, 1)
    alone = INJECTORS[by](replace(order, count=1, requests=few))
    return alone.seconds * order.requests / few * STAGGER


def _in_turn(order: Order, injected: Injected) -> dict[str, Any]:
    return {
        "scenario": "in turn",
        "stagger_seconds": round(order.stagger, 6),
        "began": [round(one.began, 6) for one in injected.injectors],
        "ended": [round(one.ended, 6) for one in injected.injectors],
        "phases": [
            [active, round(seconds, 6), *figures]
            for active, seconds, *figures in phases(injected.injectors)
        ],
        "bin_seconds": injected.seconds / BINS,
        "counts": [counts(one, BINS, injected.seconds) for one in injected.injectors],
    }


FULL_CORE = 0.9
"""The share of its core from which on a server of one process has no more to give."""
DRAWN = 4
COLOURS = ("#0b4f9e", "#e8843c", "#2f7d32")
"""Of the injectors."""
LINEAR = 0.99
MILLI = 1e-3
COLUMNS = (
    Column("total time", "s", 3),
    Column("time per request", "ms", 3, 1e3),
    Column("shortest", "ms", 3, MILLI),
    Column("longest", "ms", 2, MILLI),
    Column("requests"),
    Column("requests per second", "/s"),
)


def _rate(sample: Record) -> float:
    return float(sample["requests"] / sample["seconds"])


def _total(sample: Record) -> tuple[float, float]:
    return float(sample["requests"]), float(sample["seconds"])


FIGURES: Sequence[tuple[str, str, Axis, Axis, Callable[[Record], tuple[float, float]]]] = (
    (
        *("power-rate", "Requests per second by number of injectors"),
        *(Axis("Injectors", low=0), Axis("Requests", "/s", low=0)),
        lambda sample: (float(sample["injectors"]), _rate(sample)),
    ),
    (
        *("power-total", "Total time by requests"),
        *(Axis("Requests", low=0), Axis("Total time", "s", low=0)),
        _total,
    ),
)
RATE = tables.each(_rate)
Fit: TypeAlias = tuple[float, float, float]
"""A line by least squares: slope, offset, and the share of the variation that it explains."""


def fit(points: Sequence[tuple[float, float]]) -> Fit | None:
    """The line; None for less than three points, or if all are at one place."""
    if len(points) < 3:
        return None
    x, y = zip(*points, strict=True)
    try:
        slope, offset = statistics.linear_regression(x, y)
        return slope, offset, statistics.correlation(x, y) ** 2
    except statistics.StatisticsError:
        return None


def report(results: Results) -> list[Section]:
    """The levels, the phases, and what was in 2005."""
    samples = tables.latest(results.samples)
    at_once = [one for one in samples if one["scenario"] == "at once"]
    in_turn = {one["server"]: one for one in samples if one["scenario"] == "in turn"}
    return [
        *([_levels(list(tables.by_server(samples)), at_once)] if at_once else []),
        *([_phases(in_turn)] if in_turn else []),
        originals.section(
            *("Power in 2005", "power-2005-phases", "power-2005-injectors"),
            text=tables.lost(results),
        ),
    ]


def _phases(in_turn: Mapping[str, Record]) -> Section:
    rates = tables.spreads(in_turn.values(), RATE)
    rows: list[list[Cell]] = []
    for server in tables.ranked(rates, in_turn, highest=True):
        sample = in_turn[server]
        phases = [
            (" + ".join(f"M{number}" for number in active) or "none", *figures)
            for active, *figures in sample["phases"]
        ]
        whole = (sample[field] for field in ("seconds", "requests", "low_us", "high_us"))
        for names, seconds, requests, low, high in [*phases, ("all", *whole)]:
            each, rate = (seconds / requests, requests / seconds) if requests else (None, None)
            rows.append([server, names, seconds, each, low, high, requests, rate])
    table = tables.table(
        "power-phases",
        "Phases by which injectors are active",
        ["server", "active injectors", *COLUMNS],
        rows,
        "Time per request is the time of the phase divided by its requests; the shortest and the "
        "longest are what an injector waited. A request belongs to the phase in which it ended.",
    )
    figure = Panels(
        "power-phases-panels",
        "Requests per second by injector",
        [_over_time(server, in_turn[server]) for server in list(in_turn)[:DRAWN]],
        caption="Answers in sixtieths of the whole time.",
    )
    one = next(iter(in_turn.values()))
    each = one["requests"] // one["injectors"]
    began = "apart by a sixteenth of the time that one takes alone."
    if one["by"] == "locust":
        began = f"{one['stagger_seconds']:g} s apart."
    text = [
        f"What happens when injectors come one after the other? {one['injectors']} of them ask for "
        f"{each:,} pages each, of five at random. {_by(one)}. In 2005 they began a second apart, "
        f"and one of them alone took sixteen seconds; here they begin {began}"
    ]
    said = tables.answer("Three injectors in turn, requests per second", rates, "/s", highest=True)
    return Section("Three injectors, one after the other", text, [figure, table], said)


def _by(sample: Record) -> str:
    if sample["by"] == "locust":
        return "They are workers of Locust, which keep their connections"
    return "They are processes of our own client, with a connection for each request"


def _over_time(server: str, sample: Record) -> Lines:
    part = float(sample["bin_seconds"])
    lines = []
    for number, counts in enumerate(sample["counts"]):
        points = [(index * part, count / part) for index, count in enumerate(counts)]
        lines.append(Line(f"M{number + 1}", COLOURS[number % len(COLOURS)], points))
    x, y = Axis("Time", "s", low=0), Axis("Requests", "/s", low=0)
    return Lines(f"power-phases-{server.replace(' ', '-')}", server, x, y, lines, steps=True)


def _levels(servers: Sequence[str], at_once: Sequence[Record]) -> Section:
    known = tables.by_server(sorted(at_once, key=lambda sample: int(sample["injectors"])))
    own = {server: known[server] for server in servers if server in known}
    fits = {server: found for server, of in own.items() if (found := fit(list(map(_total, of))))}
    counts = sorted({int(one["injectors"]) for one in at_once})
    each = at_once[0]["requests"] // at_once[0]["injectors"]
    text = [
        f"How many requests does a server answer if {', '.join(map(str, counts))} injectors "
        f"(client processes) ask at once? Each asks for {each:,} pages, chosen at random from "
        "five, one after another. "
        f"{_by(at_once[0])}.",
        *_limits(own),
        *_lines(fits),
    ]
    rates = tables.spreads((one for one in at_once if one["injectors"] == counts[-1]), RATE)
    what = f"{counts[-1]} injectors at once, requests per second"
    said = tables.answer(what, rates, "/s", highest=True)
    figures = []
    for name, title, x, y, point in FIGURES:
        points = {server: sorted(map(point, of)) for server, of in own.items()}
        figures.append(tables.lines(name, title, x, y, points, marks=True))
    most = [one for one in at_once if one["injectors"] == counts[-1]]
    figures += tables.percentiles("power", most, "times")
    order = tables.ranked(rates, own, highest=True)
    parts: list[Lines | Table] = [
        *figures,
        _table({server: own[server] for server in order}),
        _linearity(fits),
    ]
    return Section("More and more injectors", text, parts, said)


def _table(own: Mapping[str, Sequence[Record]]) -> Table:
    values: list[tables.Value] = [
        "seconds",
        tables.each(lambda s: s["seconds"] / s["requests"]),
        *("low_us", "high_us", "requests"),
        RATE,
        "server_busy",
        tables.each(lambda s: s["client_busy"] / s["client_cores"]),
    ]
    return tables.table(
        "power-injectors",
        "By number of injectors",
        [
            *("server", "injectors", *COLUMNS),
            Column("server busy", "% of a core", 0, 100),
            Column("injectors busy", "% of their cores", 0, 100),
        ],
        [
            [server, float(count), *(tables.cell(samples, one) for one in values)]
            for server, of in own.items()
            for count, samples in tables.by(of, "injectors").items()
        ],
        "Time per request is the total time divided by the requests; the shortest and the longest "
        "are what an injector waited.",
    )


def _linearity(fits: Mapping[str, Fit]) -> Table:
    return tables.table(
        "power-linearity",
        "Total time by requests: a line by least squares",
        [
            "server",
            Column("each request more", "ms", 4, 1e3),
            Column("before the first", "s", 3),
            Column("explained by the line (R²)", "", 4),
        ],
        [[server, *fits[server]] for server in sorted(fits, key=lambda one: fits[one][0])],
        "R² is the share of the variation that the line explains.",
        "each request more",
    )


def _limits(own: Mapping[str, Sequence[Record]]) -> list[str]:
    """Whether injectors or servers were the limit, by their cores."""
    injectors, servers = [], []
    for server, of in own.items():
        full = [s for s in of if s["client_busy"] >= SATURATED * s["client_cores"]]
        levels = {one["injectors"] for one in full}
        busy = [s for s in of if s["server_busy"] >= FULL_CORE and s["injectors"] not in levels]
        injectors += [f"{server} (from {one['injectors']} on)" for one in full[:1]]
        servers += [f"{server} (from {one['injectors']} on)" for one in busy[:1]]
    said = []
    if injectors:
        said.append(
            f"With {', '.join(injectors)}, the injectors' cores were full, so the figures show the "
            "limit of the injectors and not of the server."
        )
    if servers:
        said.append(f"The server used a whole core: {', '.join(servers)}.")
    return said or [
        "Neither the injectors' cores nor a core of the server were full: the rest is the "
        "kernel's work for both, and other programs on the machine."
    ]


def _lines(fits: Mapping[str, Fit]) -> list[str]:
    if not fits:
        return []
    linear = [server for server, (_, _, explained) in fits.items() if explained >= LINEAR]
    others = [server for server in fits if server not in linear]
    said = (
        "The study of 2005 says that the total time grows linearly with the number of requests. "
        "Here a straight line "
        f"explains {LINEAR:.0%} of it or more with {', '.join(linear) or 'no server'}"
    )
    return [f"{said}, and less with {', '.join(others)}." if others else f"{said}."]


STUDY = Study(
    NAME,
    "1 to 12 injectors at once: requests per second by active injectors, and how the time grows",
    "Uniserve, 2005",
    servers,
    plan,
    report,
    arguments,
    given=True,
)
