"""Report of the study `influence`: tables, analysis of variance, and bottlenecks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadtests.clients.load import SATURATED
from loadtests.reporting.model import Axis, Cell, Column, Lines, Panels, Section, Table
from loadtests.stats.results import Results
from loadtests.stats.variance import Analysis, analyse
from loadtests.studies import tables
from loadtests.studies.client_effect import original, variance_tables
from loadtests.studies.client_effect.grid import Grid, Part, grid, largest
from loadtests.studies.client_effect.original import EFFECT, MEAN
from loadtests.studies.client_effect.verdict import verdict

NAME = "influence"


@dataclass(frozen=True)
class Measure:
    """A field of the samples that is analysed."""

    field: str
    title: str
    unit: str
    places: int
    scale: float = 1.0


MEASURES = (
    Measure("rate", "requests per second", "1/s", 0),
    Measure("octet_rate", "bytes per second", "MB/s", 2, 1e-6),
)


def report(results: Results) -> list[Section]:
    """All of it; of what failed, that it failed."""
    if not results.samples:
        return []
    found = grid(results, "rate")
    part = largest(found)
    parts: list[Table | Panels] = [_figure(results, found)]
    for measure in MEASURES:
        parts += _tables(grid(results, measure.field), part, measure)
    if part.replications:
        parts += _logarithms(found, part)
    client = f"Of one core. From {SATURATED:.0%} on the client is taken for the limit."
    parts += [
        _busy(results, found, "busy", "clients", "client_busy", client),
        _busy(
            results,
            found,
            "busy-servers",
            "servers",
            "server_busy",
            "All its processes together, of one core.",
        ),
    ]
    text = [
        "How much of what a benchmark says is about its client? Every client asks every server for "
        f"the same page, {_times(part)}, and the analysis of variance with two factors tells what "
        "share of the variation is due to the client, to the server, to both together and to "
        "neither.",
        *_remarks(results, found, part),
    ]
    told = Section("Influence of the client", text, parts, verdict(results))
    return [told, original.section()]


def _times(part: Part) -> str:
    return f"{part.replications} times" if part.replications > 1 else "once"


def _remarks(results: Results, found: Grid, part: Part) -> list[str]:
    said = []
    most = max(len(values) for values in found.values.values())
    holes = found.holes(most)
    if holes:
        lacking = "; ".join(f"{client} with {server}" for client, server in holes)
        said.append(f"Fewer than {most} observations were made of: {lacking}.")
    if part.left_out:
        said.append(
            "The analysis is of the largest part that is complete, without "
            f"{', '.join(part.left_out)}."
        )
    if not part.replications:
        said.append("Nothing can be analysed: that takes two clients and two servers, complete.")
    elif part.replications == 1:
        said.append("Observed once only, interaction and error cannot be told apart.")
    elif part.replications < most:
        said.append(f"Of each combination the first {part.replications} observations are used.")
    said += _about_clients(results)
    errors = sum(sum(sample["errors"].values()) for sample in results.samples)
    if errors:
        requests = sum(sample["requests"] for sample in results.samples)
        said.append(f"Of {requests + errors:,} requests {errors:,} failed, and are not counted.")
    return said + tables.lost(results)


def _about_clients(results: Results) -> list[str]:
    notes = {sample["client"]: sample["note"] for sample in results.samples if sample["note"]}
    spinning = dict.fromkeys(sample["client"] for sample in results.samples if sample["spins"])
    each = "; ".join(f"{client} {note}" for client, note in notes.items())
    said = [f"Of the clients: {each}."] if each else []
    if spinning:
        whether = f"Whether {' and '.join(spinning)} was the limit"
        said.append(f"{whether} cannot be told by its busy share, which is not looked at.")
    return said


def _tables(found: Grid, part: Part, measure: Measure) -> list[Table | Panels]:
    """What was observed, with means and effects; then the analysis and the effects' intervals."""
    whole = Grid(found.clients, grid_order(part, found), found.values)
    if not part.replications:
        return [_observed(whole, measure, None, part)]
    analysed = whole.only(part.grid.clients, part.grid.servers)
    analysis = analyse(analysed.cells(part.replications))
    variance = variance_tables.variance(
        analysis, f"{NAME}-{measure.field}-variance", measure.title, measure.unit, measure.scale
    )
    effects = variance_tables.effects(
        analysis,
        part,
        f"{NAME}-{measure.field}-effects",
        f"Effects on {measure.title}",
        Column("effect", measure.unit, measure.places, measure.scale),
        "Whether an effect differs from 0 is said with 95 % confidence.",
    )
    return [variance, _observed(whole, measure, analysis, part), effects]


def grid_order(part: Part, found: Grid) -> Sequence[str]:
    """The servers from fast to slow: those of the analysed part, the others behind them."""
    others = [server for server in found.servers if server not in part.grid.servers]
    return [*reversed(part.grid.servers), *reversed(others)]


def _observed(whole: Grid, measure: Measure, analysis: Analysis | None, part: Part) -> Table:
    numbers = [
        Column(client, measure.unit, measure.places, measure.scale) for client in whole.clients
    ]
    columns = [
        Column("server"),
        *numbers,
        *(Column(name, measure.unit, measure.places, measure.scale) for name in (MEAN, EFFECT)),
    ]
    rows: list[list[Cell]] = []
    for server in whole.servers:
        row: list[Cell] = [server, *(whole.spread(client, server) for client in whole.clients)]
        if analysis and server in part.grid.servers:
            effect = analysis.b_effects[part.grid.servers.index(server)]
            row += [analysis.mean + effect, effect]
        else:
            row += [None, None]
        rows.append(row)
    if analysis:
        effects: list[Cell] = [
            analysis.a_effects[part.grid.clients.index(client)]
            if client in part.grid.clients
            else None
            for client in whole.clients
        ]
        means: list[Cell] = [
            analysis.mean + effect if isinstance(effect, float) else None for effect in effects
        ]
        rows += [[MEAN, *means, analysis.mean, None], [EFFECT, *effects, None, None]]
    return Table(
        f"{NAME}-{measure.field}",
        f"{measure.title.capitalize()} by server and client",
        columns,
        rows,
        tables.ours(whole.servers),
        "From the fastest to the slowest server. The effect is the mean of a row or column less "
        "the mean of all.",
        MEAN,
    )


def _logarithms(found: Grid, part: Part) -> list[Table | Panels]:
    analysed = found.only(part.grid.clients, part.grid.servers)
    cells = analysed.cells(part.replications)
    if any(value <= 0 for row in cells for cell in row for value in cell):
        return []
    analysis = analyse(cells, log=True)
    effects = variance_tables.effects(
        analysis,
        part,
        f"{NAME}-log-effects",
        "Factors by which clients and servers differ",
        Column("factor", "×", 2),
        "Of requests per second, against the geometric mean of all. Time per request is that of "
        "server and client together, so that a fast server counts for more with a fast client: "
        "what multiplies adds up as logarithms, and the errors of slow and fast ones become alike.",
        lambda exponent: float(10**exponent),
    )
    name, title = f"{NAME}-log-variance", "log₁₀ of requests per second"
    return [variance_tables.variance(analysis, name, title), effects]


def _figure(results: Results, found: Grid) -> Panels:
    colours = {sample["client"]: sample["colour"] for sample in results.samples}
    places = list(enumerate(found.servers, 1))
    lines = []
    for client in found.clients:
        rates = [(place, found.spread(client, server)) for place, server in places]
        line = tables.line(client, [(place, one) for place, one in rates if one])
        lines.append(replace(line, colour=colours[client]))
    order = "; ".join(f"{place} {name}" for place, name in places)
    x = Axis("servers from slow to fast", low=1, high=float(max(len(found.servers), 2)))
    panels = [
        Lines(
            f"{NAME}-{name}",
            title,
            x,
            Axis("requests", "/s", log=log, low=None if log else 0.0),
            lines,
            marks=True,
        )
        for name, title, log in (
            ("lines", "as they are", False),
            ("lines-log", "logarithms", True),
        )
    ]
    return Panels(
        f"{NAME}-interaction",
        "What each client gets from each server",
        panels,
        "Parallel lines would mean that client and server do not interact; a line that stays level "
        "is a client that gets no more from faster servers.",
        f"{order}.",
    )


def _busy(results: Results, found: Grid, name: str, title: str, field: str, note: str) -> Table:
    shares = grid(results, field)
    return Table(
        f"{NAME}-{name}",
        f"Busy shares of the {title}",
        [Column("server"), *(Column(client, "%", 0, 100) for client in found.clients)],
        [
            [server, *(shares.spread(client, server) for client in found.clients)]
            for server in found.servers
        ],
        tables.ours(found.servers),
        note,
    )
