"""Tables of an analysis of variance: what explains it, and the effects of clients and servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loadtests.reporting.cells import number
from loadtests.reporting.model import Cell, Column, Table
from loadtests.stats.variance import CONFIDENCES, Analysis, Interval
from loadtests.studies import tables
from loadtests.studies.client_effect.grid import Part

SOURCES = {"A": "client", "B": "server", "AB": "both (interaction)", "error": "error"}


def variance(
    analysis: Analysis, name: str, title: str, unit: str = "", scale: float = 1.0
) -> Table:
    """The share of the variation that is due to each."""
    # Only now: it is slow to load.
    from scipy.special import fdtri

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
    bounds = [analysis.share_intervals(confidence) for confidence in CONFIDENCES]
    rows: list[list[Cell]] = []
    for source in analysis.sources():
        needed: Cell = None
        if source.f is not None:
            needed = float(fdtri(source.freedom, analysis.error_freedom, 0.95))
        chance = source.probability
        rows.append(
            [
                SOURCES[source.name],
                source.squares,
                source.share,
                *(_bounds(one[source.name], lambda share: share * 100, 2) for one in bounds),
                float(source.freedom),
                source.mean_square,
                source.f,
                needed,
                None if chance is None else "< 0.0001" if chance < 0.0001 else f"{chance:.4f}",
            ]
        )
    freedom = sum(source.freedom for source in analysis.sources())
    rows.append(["total", analysis.sst, 1.0, None, None, float(freedom), None, None, None, None])
    count = len(analysis.a_effects) * len(analysis.b_effects)
    note = (
        f"{count} combinations, {analysis.replications} observations of each. P is the probability "
        "of so great an F without any influence."
    )
    return Table(name, f"Analysis of variance of {title}", columns, rows, note=note)


def _bounds(interval: Interval, shown: Callable[[float], float], places: int) -> Cell:
    if interval.low is None or interval.high is None:
        return None
    return " – ".join(number(shown(bound), places) for bound in (interval.low, interval.high))


def effects(
    analysis: Analysis,
    part: Part,
    name: str,
    title: str,
    column: Column,
    note: str,
    convert: Callable[[float], float] = float,
) -> Table:
    """The effect of each client and server with its intervals, each converted for the table."""
    rows: list[list[Cell]] = []
    levels: tuple[tuple[str, Sequence[str], Callable[[int, float], Interval]], ...] = (
        ("client", part.grid.clients, analysis.a_interval),
        ("server", part.grid.servers, analysis.b_interval),
    )
    for kind, names, interval in levels:
        for level, one in enumerate(names):
            found = [interval(level, confidence) for confidence in CONFIDENCES]
            shown = [
                _bounds(each, lambda bound: convert(bound) * column.scale, column.places)
                for each in found
            ]
            significant = "yes" if found[-1].significant else "no"
            rows.append([one, kind, convert(found[0].value), *shown, significant])
    columns = [
        Column("of"),
        Column("kind"),
        column,
        *(Column(f"{confidence:.0%} interval", column.unit) for confidence in CONFIDENCES),
        Column(f"differs from {convert(0.0):g}"),
    ]
    return Table(name, title, columns, rows, tables.ours(part.grid.servers), note)
