"""Report of the study `power`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from loadtests.clients.load import SATURATED
from loadtests.reporting.model import Axis, Cell, Column, Line, Lines, Panels, Section, Table
from loadtests.servers.registry import colour_of
from loadtests.stats.results import Results, spread
from loadtests.store import Record
from loadtests.studies.originals import uniserve_2005 as past
from loadtests.studies.scalability.injection import Fit, fit

FULL_CORE = 0.9
"""The share of its core from which on a server of one process has no more to give."""
DRAWN = 4
COLOURS = ("#0b4f9e", "#e8843c", "#2f7d32")
"""Of the injectors."""
LINEAR = 0.99
MILLI = 1e-3


class Power(NamedTuple):
    """The samples of both tests, by server and number of injectors."""

    servers: list[str]
    in_turn: dict[str, Record]
    at_once: dict[tuple[str, int], list[Record]]

    def levels(self, server: str) -> list[int]:
        """The numbers of injectors."""
        return sorted(count for name, count in self.at_once if name == server)


def _power(samples: Iterable[Record]) -> Power:
    kept = {(s["scenario"], s["server"], s["injectors"], s["round"]): s for s in samples}
    servers = list(dict.fromkeys(str(sample["server"]) for sample in kept.values()))
    power = Power(servers, {}, {})
    for sample in kept.values():
        if sample["scenario"] == "in turn":
            power.in_turn[sample["server"]] = sample
        else:
            key = (sample["server"], int(sample["injectors"]))
            power.at_once.setdefault(key, []).append(sample)
    return power


def report(results: Results) -> list[Section]:
    """The phases, the levels, and what was in 2005."""
    power = _power(results.samples)
    sections = []
    if power.in_turn:
        sections.append(_phases(power))
    if power.at_once:
        sections.append(_levels(power))
    return [*sections, _past(results)]


def _phases(power: Power) -> Section:
    columns = [
        Column("Server"),
        Column("Active"),
        Column("Total", "s", 3),
        Column("Time", "ms/request", 3, 1e3),
        Column("Least", "ms", 3, MILLI),
        Column("Most", "ms", 2, MILLI),
        Column("Requests"),
        Column("Requests", "/s"),
    ]
    rows: list[list[Cell]] = []
    for server, sample in power.in_turn.items():
        for active, seconds, requests, low, high in sample["phases"]:
            each, rate = (seconds / requests, requests / seconds) if requests else (None, None)
            rows.append([server, _names(active), seconds, each, low, high, requests, rate])
        requests, seconds = sample["requests"], sample["seconds"]
        row = [seconds, seconds / requests, sample["low_us"], sample["high_us"], requests]
        rows.append([server, "all", *row, requests / seconds])
    table = Table(
        "power-phases",
        "Phases by which injectors are active",
        columns,
        rows,
        _strong(power.servers),
        "Time per request is that of the phase by its requests; the least and the most are what an "
        "injector waited. A request belongs to the phase in which it ended.",
    )
    panels = [_over_time(server, power.in_turn[server]) for server in list(power.in_turn)[:DRAWN]]
    figure = Panels(
        "power-phases",
        "Requests per second by injector",
        panels,
        caption="Answers in sixtieths of the whole time.",
    )
    one = next(iter(power.in_turn.values()))
    each = one["requests"] // one["injectors"]
    text = [
        f"What happens when injectors come one after the other? {one['injectors']} of them ask for "
        f"{each:,} pages each, of five at random, {_by(one)}. In 2005 they began a second apart, "
        "and one of them alone took sixteen; here they begin "
        + (
            f"{one['stagger_seconds']:g} s apart."
            if one["by"] == "locust"
            else "a sixteenth apart of what one takes alone."
        )
    ]
    return Section("Three injectors, one after the other", text, [table, figure])


def _by(sample: Record) -> str:
    if sample["by"] == "locust":
        return "as workers of Locust, which keep their connections"
    return "as processes of our own client, with a connection for each request"


def _names(active: Sequence[int]) -> str:
    return " + ".join(f"M{number}" for number in active) or "none"


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
    fits = {server: fit(_points(power, server)) for server in power.servers}
    parts: list[Table | Lines] = [_table(power), _linearity(fits), *_figures(power)]
    counts = sorted({count for _, count in power.at_once})
    sample = next(iter(power.at_once.values()))[0]
    each = sample["requests"] // sample["injectors"]
    text = [
        f"How much does a server get through if {', '.join(map(str, counts))} injectors ask at "
        f"once? Each asks for {each:,} pages, of five at random, one after the other, "
        f"{_by(sample)}."
    ]
    return Section("More and more injectors", [*text, *_limits(power), *_lines(fits)], parts)


def _points(power: Power, server: str) -> list[tuple[float, float]]:
    """Requests and seconds of every sample."""
    return [
        (float(sample["requests"]), float(sample["seconds"]))
        for count in power.levels(server)
        for sample in power.at_once[server, count]
    ]


def _table(power: Power) -> Table:
    values: list[tuple[Column, Callable[[Record], float]]] = [
        (Column("Total", "s", 3), lambda s: s["seconds"]),
        (Column("Time", "ms/request", 3, 1e3), lambda s: s["seconds"] / s["requests"]),
        (Column("Least", "ms", 3, MILLI), lambda s: s["low_us"]),
        (Column("Most", "ms", 2, MILLI), lambda s: s["high_us"]),
        (Column("Requests"), lambda s: s["requests"]),
        (Column("Requests", "/s"), lambda s: s["requests"] / s["seconds"]),
        (Column("Server busy", "% of a core", 0, 100), lambda s: s["server_busy"]),
        (
            Column("Injectors busy", "% of their cores", 0, 100),
            lambda s: s["client_busy"] / s["client_cores"],
        ),
    ]
    rows: list[list[Cell]] = [
        [
            server,
            float(count),
            *(spread(map(value, power.at_once[server, count])) for _, value in values),
        ]
        for server in power.servers
        for count in power.levels(server)
    ]
    columns = [Column("Server"), Column("Injectors"), *(column for column, _ in values)]
    return Table(
        "power-injectors",
        "By number of injectors",
        columns,
        rows,
        _strong(power.servers),
        "Time per request is the total by the requests; the least and the most are what an "
        "injector waited.",
    )


def _linearity(fits: dict[str, Fit | None]) -> Table:
    columns = [
        Column("Server"),
        Column("Each request more", "ms", 4, 1e3),
        Column("Before the first", "s", 3),
        Column("R²", "", 4),
    ]
    rows: list[list[Cell]] = [
        [server, found.slope, found.offset, found.explained]
        for server, found in fits.items()
        if found
    ]
    return Table(
        "power-linearity",
        "Total time by requests: a line by least squares",
        columns,
        rows,
        _strong(fits),
        "R² is the share of the variation that the line explains.",
    )


def _figures(power: Power) -> list[Lines]:
    def lines(point: Callable[[Record], tuple[float, float]]) -> list[Line]:
        return [
            Line(
                server,
                colour_of(server),
                sorted(
                    point(sample)
                    for count in power.levels(server)
                    for sample in power.at_once[server, count]
                ),
                strong=server.startswith("poorhttp"),
            )
            for server in power.servers
            if power.levels(server)
        ]

    return [
        Lines(
            "power-total",
            "Total time by requests",
            Axis("Requests", low=0),
            Axis("Total time", "s", low=0),
            lines(lambda s: (float(s["requests"]), float(s["seconds"]))),
            marks=True,
        ),
        Lines(
            "power-rate",
            "Requests per second by number of injectors",
            Axis("Injectors", low=0),
            Axis("Requests", "/s", low=0),
            lines(lambda s: (float(s["injectors"]), s["requests"] / s["seconds"])),
            marks=True,
        ),
    ]


def _limits(power: Power) -> list[str]:
    """Who was the limit, by the cores."""
    injectors, servers = [], []
    for server in power.servers:
        full = [
            count
            for count in power.levels(server)
            if any(
                s["client_busy"] >= SATURATED * s["client_cores"]
                for s in power.at_once[server, count]
            )
        ]
        if full:
            injectors.append(f"{server} (from {min(full)} on)")
        busy = [
            count
            for count in power.levels(server)
            if count not in full
            and any(s["server_busy"] >= FULL_CORE for s in power.at_once[server, count])
        ]
        if busy:
            servers.append(f"{server} (from {min(busy)} on)")
    said = []
    if injectors:
        said.append(
            "The injectors were the limit, their cores were full, with "
            f"{', '.join(injectors)}: there the figures are theirs."
        )
    if servers:
        said.append(f"The server used a whole core: {', '.join(servers)}.")
    if not said:
        said.append(
            "Neither the injectors' cores nor a whole core of the server were full: the rest is "
            "the kernel's work for both, and whatever else ran on the machine."
        )
    return said


def _lines(fits: dict[str, Fit | None]) -> list[str]:
    known = {server: found for server, found in fits.items() if found}
    if not known:
        return []
    linear = [server for server, found in known.items() if found.explained >= LINEAR]
    others = [server for server in known if server not in linear]
    said = (
        "The document says that the total time grows linearly with the requests. Here a line "
        f"explains {LINEAR:.0%} of it or more with {', '.join(linear) or 'no server'}"
    )
    return [f"{said}, and less with {', '.join(others)}." if others else f"{said}."]


def _past(results: Results) -> Section:
    ms = [Column("Time", "ms/request", 2), Column("Least", "ms", 2), Column("Most", "ms", 1)]
    end = [Column("Requests"), Column("Requests", "/s", 1)]
    phases: list[list[Cell]] = [list(phase) for phase in past.PHASES]
    power: list[list[Cell]] = [[str(one.injectors), *map(float, one[1:])] for one in past.POWER]
    total = Column("Total", "s", 2)
    parts = [
        Table(
            "power-2005-phases",
            "What the study of 2005 had: three injectors, Uniserve 0.9.9",
            [Column("Active"), total, *ms, *end],
            phases,
            frozenset(),
            "5,000 requests each; M3 was a PC outside of the local network. The longest times are "
            "printed there as seconds, and can only be milliseconds.",
        ),
        Table(
            "power-2005-injectors",
            "What the study of 2005 had: by number of injectors, Uniserve 0.9.9",
            [Column("Injectors"), total, *ms, *end],
            power,
        ),
    ]
    text = [f"Failed: {one['what']}: {one['reason']}" for one in results.failures]
    text += [f"Left out: {one['server']}: {one['reason']}" for one in results.missing]
    return Section("Power in 2005", text, parts)


def _strong(servers: Iterable[str]) -> frozenset[str]:
    return frozenset(server for server in servers if server.startswith("poorhttp"))
