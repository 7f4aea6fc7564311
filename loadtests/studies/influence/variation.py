"""Observations of every client with every server, and tables of their analysis of variance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from loadtests.reporting.cells import number
from loadtests.reporting.model import Cell, Column, Table
from loadtests.stats.results import Results, Spread, spread
from loadtests.stats.variance import CONFIDENCES, Analysis, Interval, analyse
from loadtests.studies import tables

SOURCES = {"A": "client", "B": "server", "AB": "both (interaction)", "error": "error"}
MEAN, EFFECT = "Mean", "Effect"


@dataclass(frozen=True)
class Grid:
    """`values` by client and server, in the order in which they were observed.

    `replications` are as many as there are of any combination, or of each that is analysed.
    """

    clients: Sequence[str]
    servers: Sequence[str]
    values: dict[tuple[str, str], list[float]]
    replications: int

    @property
    def observations(self) -> int:
        """How many there are without holes."""
        return len(self.clients) * len(self.servers) * self.replications

    def spread(self, client: str, server: str) -> Spread | None:
        """Over all observations of a combination."""
        return spread(self.values.get((client, server), []))

    def holes(self) -> list[tuple[str, str]]:
        """The combinations with fewer observations."""
        whole = [(client, server) for client in self.clients for server in self.servers]
        return [one for one in whole if len(self.values.get(one, [])) < self.replications]

    def left_out(self, part: Grid) -> list[str]:
        """The clients and servers that a part does without."""
        clients = [client for client in self.clients if client not in part.clients]
        return [*clients, *(server for server in self.servers if server not in part.servers)]

    def cells(self) -> list[list[list[float]]]:
        """The first `replications`: a row for each client, the servers in their order."""
        return [
            [self.values[client, server][: self.replications] for server in self.servers]
            for client in self.clients
        ]

    def analysis(self, *, log: bool = False) -> Analysis:
        """Clients are A, servers B; without holes."""
        return analyse(self.cells(), log=log)


def grid(results: Results, field: str) -> Grid:
    """A field of all samples; servers in order of their best, so from slow to fast."""
    values: dict[tuple[str, str], list[float]] = {}
    for sample in results.samples:
        key = (str(sample["client"]), str(sample["server"]))
        values.setdefault(key, []).append(float(sample[field]))
    clients = list(dict.fromkeys(client for client, _ in values))
    servers = list(dict.fromkeys(server for _, server in values))
    whole = Grid(clients, servers, values, max(map(len, values.values()), default=0))

    def best(server: str) -> float:
        found = (whole.spread(client, server) for client in clients)
        return max(one.median for one in found if one)

    return replace(whole, servers=sorted(servers, key=best))


def largest(whole: Grid) -> Grid:
    """The part without holes that has the most observations, of two clients and servers at least.

    Replicated, wherever that is possible at all: without, nothing tells interaction from error.
    It is empty if nothing can be analysed.
    """
    for allowed in (range(2, whole.replications + 1), [1]):
        parts = []
        for replications in allowed:
            holes = set(replace(whole, replications=replications).holes())
            for count in range(2, len(whole.clients) + 1):
                for clients in combinations(whole.clients, count):
                    lacking = {server for client, server in holes if client in clients}
                    servers = [server for server in whole.servers if server not in lacking]
                    if len(servers) > 1:
                        parts.append(Grid(clients, servers, whole.values, replications))
        if parts:
            return max(parts, key=lambda one: (one.observations, one.replications))
    return Grid([], [], {}, 0)


def with_effects(
    rows: Mapping[str, Sequence[Cell]],
    mean: float,
    of_rows: Mapping[str, float],
    of_columns: Sequence[float | None],
) -> list[list[Cell]]:
    """The rows with mean and effect of each row and column, where it was analysed."""

    def means(effects: Iterable[float | None]) -> list[Cell]:
        return [None if effect is None else mean + effect for effect in effects]

    told: list[list[Cell]] = []
    for name, cells in rows.items():
        effect = of_rows.get(name)
        told.append([name, *cells, *means([effect]), effect])
    return [*told, [MEAN, *means(of_columns), mean, None], [EFFECT, *of_columns, None, None]]


def variance_table(
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
        row: list[Cell] = [SOURCES[source.name], source.squares, source.share]
        row += [_bounds(one[source.name], lambda share: share * 100, 2) for one in bounds]
        row += [float(source.freedom), source.mean_square, source.f, None, None]
        if source.probability is not None:
            row[-2] = float(fdtri(source.freedom, analysis.error_freedom, 0.95))
            low = source.probability < 0.0001
            row[-1] = "< 0.0001" if low else f"{source.probability:.4f}"
        rows.append(row)
    freedom = sum(source.freedom for source in analysis.sources())
    rows.append(["total", analysis.sst, 1.0, None, None, float(freedom), None, None, None, None])
    count = len(analysis.a_effects) * len(analysis.b_effects)
    note = (
        f"{count} combinations, {analysis.replications} observations of each. P is the probability "
        "of an F this large without any influence."
    )
    return Table(name, f"Analysis of variance of {title}", columns, rows, note=note)


def _bounds(interval: Interval, shown: Callable[[float], float], places: int) -> Cell:
    if interval.low is None or interval.high is None:
        return None
    return " – ".join(number(shown(bound), places) for bound in (interval.low, interval.high))


def effects_table(
    analysis: Analysis,
    part: Grid,
    name: str,
    title: str,
    column: Column,
    note: str,
    convert: Callable[[float], float] = float,
) -> Table:
    """The effect of each client and server with its intervals, each converted for the table."""
    rows: list[list[Cell]] = []
    for kind, names, of in (
        ("client", part.clients, analysis.a_effects),
        ("server", part.servers, analysis.b_effects),
    ):
        for one, effect in zip(names, of, strict=True):
            found = [analysis.interval(effect, len(of) - 1, each) for each in CONFIDENCES]
            shown = [
                _bounds(each, lambda bound: convert(bound) * column.scale, column.places)
                for each in found
            ]
            significant = "yes" if found[-1].significant else "no"
            rows.append([one, kind, convert(effect), *shown, significant])
    columns = [
        Column("of"),
        Column("kind"),
        column,
        *(Column(f"{confidence:.0%} interval", column.unit) for confidence in CONFIDENCES),
        Column(f"differs from {convert(0.0):g}"),
    ]
    return Table(name, title, columns, rows, tables.ours(part.servers), note)
