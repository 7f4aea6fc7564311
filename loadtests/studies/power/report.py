"""Report of the study `power`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from loadtests.clients.load import SATURATED
from loadtests.reporting.model import Axis, Cell, Column, Line, Lines, Panels, Section, Table
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import tables
from loadtests.studies.originals import uniserve_2005

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
        uniserve_2005.PHASES,
        note="5,000 requests each; M3 was a PC outside of the local network. The longest times "
        "are printed there as seconds, and can only be milliseconds.",
    )
    injectors = Table(
        "power-2005-injectors",
        f"{had}: by number of injectors, Uniserve 0.9.9",
        [Column("injectors"), *COLUMNS_2005],
        uniserve_2005.POWER,
    )
    return Section("Power in 2005", tables.lost(results), [phases, injectors])
