"""The study `power`: three injectors one after the other, then 1 to 12 at once, at each server."""

from __future__ import annotations

import statistics
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from loadtests.clients.load import SATURATED
from loadtests.measure import histogram
from loadtests.measure.cpu_affinity import USABLE
from loadtests.reporting.model import Axis, Cell, Column, Line, Lines, Panels, Section, Table
from loadtests.servers.pages import TARGETS, running
from loadtests.servers.registry import Server
from loadtests.servers.registry.studies import FIVE_PAGES
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import originals, sample, tables
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.power import injectors
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
COLUMNS_2005 = tuple(
    replace(column, places=places, scale=1.0)
    for column, places in zip(COLUMNS, (2, 2, 2, 1, 0, 1), strict=True)
)
"""Those of 2005, in whose tables milliseconds are printed."""


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
        _then(results),
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
    table = Table(
        "power-phases",
        "Phases by which injectors are active",
        [Column("server"), Column("active injectors"), *COLUMNS],
        rows,
        tables.ours(in_turn),
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
        lines = [tables.curve(server, sorted(map(point, of))) for server, of in own.items()]
        figures.append(Lines(name, title, x, y, lines, marks=True))
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
    rows: list[list[Cell]] = []
    for server, of in own.items():
        for count, samples in tables.by(of, "injectors").items():
            rows.append([server, float(count), *(tables.cell(samples, one) for one in values)])
    return Table(
        "power-injectors",
        "By number of injectors",
        [
            *(Column("server"), Column("injectors"), *COLUMNS),
            Column("server busy", "% of a core", 0, 100),
            Column("injectors busy", "% of their cores", 0, 100),
        ],
        rows,
        tables.ours(own),
        "Time per request is the total time divided by the requests; the shortest and the longest "
        "are what an injector waited.",
    )


def _linearity(fits: Mapping[str, Fit]) -> Table:
    return Table(
        "power-linearity",
        "Total time by requests: a line by least squares",
        [
            Column("server"),
            Column("each request more", "ms", 4, 1e3),
            Column("before the first", "s", 3),
            Column("explained by the line (R²)", "", 4),
        ],
        [[server, *fits[server]] for server in sorted(fits, key=lambda one: fits[one][0])],
        tables.ours(fits),
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


def _then(results: Results) -> Section:
    had = "What the study of 2005 had"
    phases = Table(
        "power-2005-phases",
        f"{had}: three injectors, Uniserve 0.9.9",
        [Column("active injectors"), *COLUMNS_2005],
        originals.TABLES["2005 phases"],
        note="5,000 requests each; M3 was a PC outside of the local network. The longest times "
        "are printed there as seconds, and can only be milliseconds.",
    )
    injectors = Table(
        "power-2005-injectors",
        f"{had}: by number of injectors, Uniserve 0.9.9",
        [Column("injectors"), *COLUMNS_2005],
        originals.TABLES["2005 power"],
    )
    return Section("Power in 2005", tables.lost(results), [phases, injectors])


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
