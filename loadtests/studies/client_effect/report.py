"""Report of the study `influence`: tables, analysis of variance, and bottlenecks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from loadtests.clients.load import SATURATED
from loadtests.reporting.cells import number
from loadtests.reporting.model import Axis, Cell, Column, Line, Lines, Panels, Section, Table
from loadtests.servers.registry import SERVERS
from loadtests.stats.results import Results, spread
from loadtests.stats.variance import CONFIDENCES, Analysis, Interval, analyse
from loadtests.studies.client_effect import original
from loadtests.studies.client_effect.grid import Grid, Part, grid, largest
from loadtests.studies.client_effect.original import EFFECT, MEAN
from loadtests.studies.client_effect.verdict import verdict

NAME = "influence"
SOURCES = {"A": "client", "B": "server", "AB": "both (interaction)", "error": "error"}


@dataclass(frozen=True)
class Measure:
    """A field of the samples that is analysed."""

    field: str
    title: str
    short: str
    unit: str
    places: int
    scale: float = 1.0


MEASURES = (
    Measure("rate", "requests per second", "RPS", "1/s", 0),
    Measure("octet_rate", "bytes per second", "Throughput", "MB/s", 2, 1e-6),
)


def report(results: Results) -> list[Section]:
    """All of it; of what failed, that it failed."""
    if not results.samples:
        return []
    found = grid(results, "rate")
    part = largest(found)
    parts: list[Table | Panels] = []
    for measure in MEASURES:
        parts += _tables(grid(results, measure.field), part, measure)
    if part.replications:
        # The order of the servers is that of their speed in either measure.
        parts += _logarithms(grid(results, "rate"), part)
    parts += [_figure(results, found), _busy(results, found), _busy_servers(results, found)]
    text = [
        "How much of what a benchmark says is about its client? Every client asks every server for "
        f"the same page, {_times(part)}, and the analysis of variance with two factors tells what "
        "share of the variation is due to the client, to the server, to both together and to "
        "neither.",
        f"**{verdict(results)}**",
        *_remarks(results, found, part),
    ]
    return [Section("Influence of the client", text, parts), original.section()]


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
    said += [f"Failed: {one['what']}: {one['reason']}." for one in results.failures]
    said += [f"Left out: {one['server']}: {one['reason']}." for one in results.missing]
    return said


def _about_clients(results: Results) -> list[str]:
    notes = {sample["client"]: sample["note"] for sample in results.samples if sample["note"]}
    spinning = dict.fromkeys(sample["client"] for sample in results.samples if sample["spins"])
    each = "; ".join(f"{client} {note}" for client, note in notes.items())
    said = [f"Of the clients: {each}."] if each else []
    if spinning:
        whether = f"Whether {' and '.join(spinning)} was the limit"
        said.append(f"{whether} cannot be told by its busy share, which is not looked at.")
    return said


def _medians(results: Results, field: str, client: str, server: str) -> Cell:
    return spread(
        float(sample[field])
        for sample in results.samples
        if sample["client"] == client and sample["server"] == server
    )


def _ours(names: Sequence[str]) -> frozenset[str]:
    ours = {server.name for server in SERVERS if server.ours}
    return frozenset(name for name in names if name in ours or name.startswith("poorhttp"))


def _tables(found: Grid, part: Part, measure: Measure) -> list[Table | Panels]:
    """What was observed, with means and effects; then the analysis and the effects' intervals."""
    whole = Grid(found.clients, grid_order(part, found), found.values)
    if not part.replications:
        return [_observed(whole, measure, None, part)]
    analysed = whole.only(part.grid.clients, part.grid.servers)
    analysis = analyse(analysed.cells(part.replications))
    return [
        _observed(whole, measure, analysis, part),
        _variance(
            analysis, f"{NAME}-{measure.field}-variance", measure.title, measure.unit, measure.scale
        ),
        _effects(analysis, part, measure),
    ]


def grid_order(part: Part, found: Grid) -> Sequence[str]:
    """The servers as those of the analysed part are ordered, the others behind them."""
    others = [server for server in found.servers if server not in part.grid.servers]
    return [*part.grid.servers, *others]


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
        f"{measure.short}: {measure.title} by server and client",
        columns,
        rows,
        _ours(whole.servers),
        "From the slowest to the fastest server. The effect is the mean of a row or column less "
        "the mean of all.",
    )


def _variance(
    analysis: Analysis, name: str, title: str, unit: str = "", scale: float = 1.0
) -> Table:
    squared = scale * scale
    places = 4 if analysis.sst * squared < 1000 else 0
    unit = f"({unit})²" if unit else ""
    columns = [
        Column("due to"),
        Column("sum of squares", unit, places, squared),
        Column("share of variation", "%", 2, 100),
        *(Column(f"{confidence:.0%} interval", "%") for confidence in CONFIDENCES),
        Column("degrees of freedom"),
        Column("mean square", unit, places, squared),
        Column("F", places=2),
        Column("F at 95 %", places=2),
        Column("P"),
    ]
    # Only now: SciPy is slow to load, and a run does without it.
    from scipy.special import fdtri

    bounds = [analysis.share_intervals(confidence) for confidence in CONFIDENCES]
    rows: list[list[Cell]] = []
    for source in analysis.sources():
        needed: Cell = None
        if source.f is not None:
            needed = float(fdtri(source.freedom, analysis.error_freedom, 0.95))
        rows.append(
            [
                SOURCES[source.name],
                source.squares,
                source.share,
                *(_bounds(one[source.name], 100, 2) for one in bounds),
                float(source.freedom),
                source.mean_square,
                source.f,
                needed,
                _probability(source.probability),
            ]
        )
    freedom = sum(source.freedom for source in analysis.sources())
    rows.append(["total", analysis.sst, 1.0, None, None, float(freedom), None, None, None, None])
    count = len(analysis.a_effects) * len(analysis.b_effects)
    return Table(
        name,
        f"Analysis of variance of {title}",
        columns,
        rows,
        note=f"{count} combinations, {analysis.replications} observations of each. P is the "
        "probability of so great an F without any influence.",
    )


def _probability(value: float | None) -> Cell:
    if value is None:
        return None
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def _bounds(interval: Interval, scale: float, places: int) -> Cell:
    if interval.low is None or interval.high is None:
        return None
    return " – ".join(number(bound * scale, places) for bound in (interval.low, interval.high))


def _effect_rows(
    analysis: Analysis,
    part: Part,
    convert: Callable[[float], float],
    places: int,
    scale: float = 1.0,
) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    levels: tuple[tuple[str, Sequence[str], Callable[[int, float], Interval]], ...] = (
        ("client", part.grid.clients, analysis.a_interval),
        ("server", part.grid.servers, analysis.b_interval),
    )
    for kind, names, interval in levels:
        for level, name in enumerate(names):
            found = [interval(level, confidence) for confidence in CONFIDENCES]
            shown = [
                _bounds(
                    Interval(
                        one.value,
                        None if one.low is None else convert(one.low),
                        None if one.high is None else convert(one.high),
                    ),
                    scale,
                    places,
                )
                for one in found
            ]
            significant = "yes" if found[-1].significant else "no"
            rows.append([name, kind, convert(found[0].value), *shown, significant])
    return rows


def _effects(analysis: Analysis, part: Part, measure: Measure) -> Table:
    return Table(
        f"{NAME}-{measure.field}-effects",
        f"Effects on {measure.title}",
        [
            Column("of"),
            Column("kind"),
            Column("effect", measure.unit, measure.places, measure.scale),
            *(Column(f"{confidence:.0%} interval", measure.unit) for confidence in CONFIDENCES),
            Column("differs from 0"),
        ],
        _effect_rows(analysis, part, lambda value: value, measure.places, measure.scale),
        _ours(part.grid.servers),
        "Whether an effect differs from 0 is said with 95 % confidence.",
    )


def _logarithms(found: Grid, part: Part) -> list[Table | Panels]:
    analysed = found.only(part.grid.clients, part.grid.servers)
    cells = analysed.cells(part.replications)
    if any(value <= 0 for row in cells for cell in row for value in cell):
        return []
    analysis = analyse(cells, log=True)
    variance = _variance(analysis, f"{NAME}-log-variance", "log₁₀ of requests per second")
    effects = Table(
        f"{NAME}-log-effects",
        "Factors by which clients and servers differ",
        [
            Column("of"),
            Column("kind"),
            Column("factor", "×", 2),
            *(Column(f"{confidence:.0%} interval", "×") for confidence in CONFIDENCES),
            Column("differs from 1"),
        ],
        _effect_rows(analysis, part, lambda value: float(10**value), 2),
        _ours(part.grid.servers),
        "Of requests per second, against the geometric mean of all. Time per request is that of "
        "server and client together, so that a fast server counts for more with a fast client: "
        "what multiplies adds up as logarithms, and the errors of slow and fast ones become alike.",
    )
    return [variance, effects]


def _colours(results: Results) -> Mapping[str, str]:
    return {sample["client"]: sample["colour"] for sample in results.samples}


def _figure(results: Results, found: Grid) -> Panels:
    colours = _colours(results)
    lines = []
    for client in found.clients:
        points, band = [], []
        for place, server in enumerate(found.servers, 1):
            rates = found.spread(client, server)
            if rates is not None:
                points.append((float(place), rates.median))
                band.append((float(place), rates.low, rates.high))
        lines.append(Line(client, colours[client], points, band))
    order = "; ".join(f"{place} {name}" for place, name in enumerate(found.servers, 1))
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


def _busy(results: Results, found: Grid) -> Table:
    return Table(
        f"{NAME}-busy",
        "Busy shares of the clients",
        [Column("server"), *(Column(client, "%", 0, 100) for client in found.clients)],
        [
            [
                server,
                *(_medians(results, "client_busy", client, server) for client in found.clients),
            ]
            for server in found.servers
        ],
        _ours(found.servers),
        f"Of one core. From {SATURATED:.0%} on the client is taken for the limit.",
    )


def _busy_servers(results: Results, found: Grid) -> Table:
    return Table(
        f"{NAME}-busy-servers",
        "Busy shares of the servers",
        [Column("server"), *(Column(client, "%", 0, 100) for client in found.clients)],
        [
            [
                server,
                *(_medians(results, "server_busy", client, server) for client in found.clients),
            ]
            for server in found.servers
        ],
        _ours(found.servers),
        "All its processes together, of one core.",
    )
