"""Report of the study `power`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from loadtests.clients.load import SATURATED
from loadtests.reporting.model import Axis, Cell, Column, Line, Lines, Panels, Section, Table
from loadtests.servers.registry import colour_of
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import tables
from loadtests.studies.originals import uniserve_2005
from loadtests.studies.scalability.injection import Fit, fit

FULL_CORE = 0.9
"""The share of its core from which on a server of one process has no more to give."""
DRAWN = 4
COLOURS = ("#0b4f9e", "#e8843c", "#2f7d32")
"""Of the injectors."""
LINEAR = 0.99
MILLI = 1e-3


def _rate(sample: Record) -> float:
    """Requests per second."""
    return float(sample["requests"] / sample["seconds"])


def _columns(*first: str) -> list[Column]:
    """Those of both tests, behind the first."""
    return [
        *map(Column, first),
        Column("total time", "s", 3),
        Column("time per request", "ms", 3, 1e3),
        Column("shortest", "ms", 3, MILLI),
        Column("longest", "ms", 2, MILLI),
        Column("requests"),
        Column("requests per second", "/s"),
    ]


class Power(NamedTuple):
    """The samples of both tests, by server and number of injectors."""

    servers: list[str]
    in_turn: dict[str, Record]
    at_once: dict[tuple[str, int], list[Record]]

    def levels(self, server: str) -> list[int]:
        """The numbers of injectors."""
        return sorted(count for name, count in self.at_once if name == server)


def _power(samples: Iterable[Record]) -> Power:
    kept = tables.latest(samples)
    power = Power(list(tables.by_server(kept)), {}, {})
    for sample in kept:
        if sample["scenario"] == "in turn":
            power.in_turn[sample["server"]] = sample
        else:
            key = (sample["server"], int(sample["injectors"]))
            power.at_once.setdefault(key, []).append(sample)
    return power


def report(results: Results) -> list[Section]:
    """The levels, the phases, and what was in 2005."""
    power = _power(results.samples)
    sections = []
    if power.at_once:
        sections.append(_levels(power))
    if power.in_turn:
        sections.append(_phases(power))
    return [*sections, _then(results)]


def _phases(power: Power) -> Section:
    rates = tables.spreads(power.in_turn.values(), tables.each(_rate))
    rows: list[list[Cell]] = []
    for server in tables.ranked(rates, power.in_turn, highest=True):
        sample = power.in_turn[server]
        for active, seconds, requests, low, high in sample["phases"]:
            each, rate = (seconds / requests, requests / seconds) if requests else (None, None)
            names = " + ".join(f"M{number}" for number in active) or "none"
            rows.append([server, names, seconds, each, low, high, requests, rate])
        requests, seconds = sample["requests"], sample["seconds"]
        row = [seconds, seconds / requests, sample["low_us"], sample["high_us"], requests]
        rows.append([server, "all", *row, requests / seconds])
    table = Table(
        "power-phases",
        "Phases by which injectors are active",
        _columns("server", "active injectors"),
        rows,
        tables.ours(power.servers),
        "Time per request is that of the phase by its requests; the shortest and the longest are "
        "what an injector waited. A request belongs to the phase in which it ended.",
    )
    panels = [_over_time(server, power.in_turn[server]) for server in list(power.in_turn)[:DRAWN]]
    caption = "Answers in sixtieths of the whole time."
    figure = Panels(
        "power-phases-panels", "Requests per second by injector", panels, caption=caption
    )
    one = next(iter(power.in_turn.values()))
    each = one["requests"] // one["injectors"]
    began = "a sixteenth apart of what one takes alone."
    if one["by"] == "locust":
        began = f"{one['stagger_seconds']:g} s apart."
    text = [
        f"What happens when injectors come one after the other? {one['injectors']} of them ask for "
        f"{each:,} pages each, of five at random, {_by(one)}. In 2005 they began a second apart, "
        f"and one of them alone took sixteen; here they begin {began}"
    ]
    said = tables.answer("Three injectors in turn, requests per second", rates, "/s", highest=True)
    return Section("Three injectors, one after the other", text, [figure, table], said)


def _by(sample: Record) -> str:
    if sample["by"] == "locust":
        return "as workers of Locust, which keep their connections"
    return "as processes of our own client, with a connection for each request"


def _over_time(server: str, sample: Record) -> Lines:
    part = float(sample["bin_seconds"])
    lines = [
        Line(
            f"M{number}",
            COLOURS[(number - 1) % len(COLOURS)],
            [(index * part, count / part) for index, count in enumerate(counts)],
        )
        for number, counts in enumerate(sample["counts"], 1)
    ]
    x, y = Axis("Time", "s", low=0), Axis("Requests", "/s", low=0)
    return Lines(f"power-phases-{server.replace(' ', '-')}", server, x, y, lines, steps=True)


def _levels(power: Power) -> Section:
    fits = {}
    for server in power.servers:
        points = [
            (float(sample["requests"]), float(sample["seconds"]))
            for count in power.levels(server)
            for sample in power.at_once[server, count]
        ]
        if found := fit(points):
            fits[server] = found
    counts = sorted({count for _, count in power.at_once})
    sample = next(iter(power.at_once.values()))[0]
    each = sample["requests"] // sample["injectors"]
    text = [
        f"How much does a server get through if {', '.join(map(str, counts))} injectors ask at "
        f"once? Each asks for {each:,} pages, of five at random, one after the other, "
        f"{_by(sample)}.",
        *_limits(power),
        *_lines(fits),
    ]
    most = [s for (_, count), own in power.at_once.items() if count == counts[-1] for s in own]
    rates = tables.spreads(most, tables.each(_rate))
    what = f"{counts[-1]} injectors at once, requests per second"
    said = tables.answer(what, rates, "/s", highest=True)
    order = tables.ranked(rates, power.servers, highest=True)
    parts: list[Lines | Table] = [*_figures(power), _table(power, order), _linearity(fits)]
    return Section("More and more injectors", text, parts, said)


def _table(power: Power, order: Sequence[str]) -> Table:
    values: list[tables.Value] = [
        "seconds",
        tables.each(lambda s: s["seconds"] / s["requests"]),
        *("low_us", "high_us", "requests"),
        tables.each(_rate),
        "server_busy",
        tables.each(lambda s: s["client_busy"] / s["client_cores"]),
    ]
    return Table(
        "power-injectors",
        "By number of injectors",
        [
            *_columns("server", "injectors"),
            Column("server busy", "% of a core", 0, 100),
            Column("injectors busy", "% of their cores", 0, 100),
        ],
        [
            [
                server,
                float(count),
                *(tables.cell(power.at_once[server, count], value) for value in values),
            ]
            for server in order
            for count in power.levels(server)
        ],
        tables.ours(power.servers),
        "Time per request is the total by the requests; the shortest and the longest are what an "
        "injector waited.",
    )


def _linearity(fits: dict[str, Fit]) -> Table:
    return Table(
        "power-linearity",
        "Total time by requests: a line by least squares",
        [
            Column("server"),
            Column("each request more", "ms", 4, 1e3),
            Column("before the first", "s", 3),
            Column("explained by the line (R²)", "", 4),
        ],
        [[server, *fits[server]] for server in sorted(fits, key=lambda one: fits[one].slope)],
        tables.ours(fits),
        "R² is the share of the variation that the line explains.",
        "each request more",
    )


def _figures(power: Power) -> list[Lines]:
    def lines(point: Callable[[Record], tuple[float, float]]) -> list[Line]:
        return [
            Line(
                server,
                colour_of(server),
                sorted(point(s) for count in levels for s in power.at_once[server, count]),
                strong=tables.is_ours(server),
            )
            for server in power.servers
            if (levels := power.levels(server))
        ]

    return [
        Lines(
            "power-rate",
            "Requests per second by number of injectors",
            Axis("Injectors", low=0),
            Axis("Requests", "/s", low=0),
            lines(lambda s: (float(s["injectors"]), _rate(s))),
            marks=True,
        ),
        Lines(
            "power-total",
            "Total time by requests",
            Axis("Requests", low=0),
            Axis("Total time", "s", low=0),
            lines(lambda s: (float(s["requests"]), float(s["seconds"]))),
            marks=True,
        ),
    ]


def _limits(power: Power) -> list[str]:
    """Whether injectors or servers were the limit, by their cores."""
    injectors, servers = [], []
    for server in power.servers:
        full = _from(power, server, lambda s: s["client_busy"] >= SATURATED * s["client_cores"])
        busy = _from(power, server, lambda s: s["server_busy"] >= FULL_CORE)
        if full:
            injectors.append(f"{server} (from {min(full)} on)")
        if busy := [count for count in busy if count not in full]:
            servers.append(f"{server} (from {min(busy)} on)")
    said = []
    if injectors:
        said.append(
            "The injectors were the limit, their cores were full, with "
            f"{', '.join(injectors)}: there the figures are theirs."
        )
    if servers:
        said.append(f"The server used a whole core: {', '.join(servers)}.")
    return said or [
        "Neither the injectors' cores nor a whole core of the server were full: the rest is "
        "the kernel's work for both, and whatever else ran on the machine."
    ]


def _from(power: Power, server: str, applies: Callable[[Record], bool]) -> list[int]:
    """The numbers of injectors for which something applies to a sample."""
    return [n for n in power.levels(server) if any(map(applies, power.at_once[server, n]))]


def _lines(fits: dict[str, Fit]) -> list[str]:
    if not fits:
        return []
    linear = [server for server, found in fits.items() if found.explained >= LINEAR]
    others = [server for server in fits if server not in linear]
    said = (
        "The document says that the total time grows linearly with the requests. Here a line "
        f"explains {LINEAR:.0%} of it or more with {', '.join(linear) or 'no server'}"
    )
    return [f"{said}, and less with {', '.join(others)}." if others else f"{said}."]


def _then(results: Results) -> Section:
    phases: list[list[Cell]] = [list(phase) for phase in uniserve_2005.PHASES]
    power: list[list[Cell]] = [
        [str(one.injectors), *map(float, one[1:])] for one in uniserve_2005.POWER
    ]
    had = "What the study of 2005 had"
    parts = [
        Table(
            "power-2005-phases",
            f"{had}: three injectors, Uniserve 0.9.9",
            _then_columns("active injectors"),
            phases,
            note="5,000 requests each; M3 was a PC outside of the local network. The longest times "
            "are printed there as seconds, and can only be milliseconds.",
        ),
        Table(
            "power-2005-injectors",
            f"{had}: by number of injectors, Uniserve 0.9.9",
            _then_columns("injectors"),
            power,
        ),
    ]
    return Section("Power in 2005", tables.lost(results), parts)


def _then_columns(first: str) -> list[Column]:
    """Those of today with the places of 2005, in whose tables milliseconds are printed."""
    places = {"longest": 1, "requests per second": 1, "requests": 0}
    return [
        Column(one.name, one.unit, places.get(one.name, 2)) if number else one
        for number, one in enumerate(_columns(first))
    ]
