"""Report of the study `deadconn`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadtests.reporting.model import Axis, Cell, Column, Lines, Panels, Section, Table
from loadtests.stats.results import Results, Spread, spread
from loadtests.store import Record
from loadtests.studies import tables
from loadtests.studies.deadconn.servers import SELECT
from loadtests.studies.originals import epoll_2001

NAME = "deadconn"
FD_SETSIZE = 1_024
KNOWN_LIMITS = {
    "lighttpd": "It takes no more connections than half of the descriptors that it may have",
    "waitress 8 threads, poll": "It accepts a connection each time it has looked at all",
}
SLOWER = 0.9
"""The share of its rate without dead connections below which a server suffers from them."""


@dataclass(frozen=True)
class Measure:
    """A field of the samples: table and figure of it."""

    field: str
    title: str
    axis: str
    unit: str
    places: int
    scale: float = 1.0


MEASURES = (
    Measure("rate", "Reply rate", "replies per second", "1/s", 0),
    Measure("mean_us", "Response time", "mean response time", "ms", 2, 1e-3),
    Measure("cpu_us", "CPU", "server's CPU time per reply", "µs", 1),
)


class Samples:
    """The samples by server, size of the answer and number of dead connections."""

    def __init__(self, samples: Sequence[Record]) -> None:
        self._by: dict[tuple[str, int, int], list[Record]] = {}
        for one in samples:
            self._by.setdefault((one["server"], one["size"], one["dead"]), []).append(one)
        self.servers = list(dict.fromkeys(server for server, _, _ in self._by))
        self.sizes = sorted({size for _, size, _ in self._by})
        self.counts = sorted({count for _, _, count in self._by})

    def found(self, field: str, server: str, size: int, count: int) -> Spread | None:
        """A field over the rounds."""
        return spread(float(one[field]) for one in self._by.get((server, size, count), []))

    def reached(self, server: str, size: int) -> list[int]:
        """The numbers of dead connections at which a server was measured."""
        return [count for count in self.counts if (server, size, count) in self._by]

    def ends(self, server: str, size: int) -> tuple[Spread, Spread] | None:
        """The rate without dead connections, and beside the most of them that it had."""
        reached = self.reached(server, size)
        if len(reached) < 2 or reached[0] != 0:
            return None
        alone, beside = (self.found("rate", server, size, reached[end]) for end in (0, -1))
        return (alone, beside) if alone and beside and alone.median else None

    def kept(self, server: str, size: int) -> float | None:
        """The share of its rate that a server keeps beside the most dead connections."""
        ends = self.ends(server, size)
        return ends[1].median / ends[0].median if ends else None

    def shares(self) -> dict[str, float]:
        """The same in the median of the sizes, most first."""
        found = {}
        for server in self.servers:
            kept = [one for size in self.sizes if (one := self.kept(server, size)) is not None]
            if kept:
                found[server] = statistics.median(kept)
        return dict(sorted(found.items(), key=lambda one: -one[1]))

    def suffers(self, server: str) -> bool:
        """Whether the best round beside the dead is below the worst without, for every size."""
        ends = [self.ends(server, size) for size in self.sizes if self.reached(server, size)]
        return all(one is not None and one[1].high < one[0].low for one in ends)


def report(results: Results) -> list[Section]:
    """All of it; of what failed, that it failed."""
    if not results.samples:
        return []
    samples = Samples(results.samples)
    sizes = tables.listed([f"{size:,}" for size in samples.sizes])
    text = [
        "What do clients get beside connections on which nothing happens? Persistent connections "
        f"ask for answers of {sizes} bytes while {samples.counts[0]:,} to "
        f"{samples.counts[-1]:,} others are dead: half of them silent, half in the middle of a "
        "head.",
        *_remarks(results, samples),
    ]
    parts: list[Table | Panels] = [_figure(samples, MEASURES[0]), _left(samples)]
    parts += [table] if (table := _ends(results)) else []
    sections = [Section("Dead connections", text, parts, _answer(samples))]
    for measure in MEASURES:
        figure = [] if measure is MEASURES[0] else [_figure(samples, measure)]
        size, most = samples.sizes[0], samples.counts[-1]
        found = {
            server: tables.scaled(one, measure.scale)
            for server in samples.servers
            if (one := samples.found(measure.field, server, size, most))
        }
        what = f"{measure.axis.capitalize()} beside {most:,} dead connections, {size:,} bytes"
        said = tables.answer(what, found, measure.unit, highest=measure.field == "rate")
        rows = [_table(samples, measure, size) for size in samples.sizes]
        sections.append(Section(f"{measure.title} by dead connections", [], [*figure, *rows], said))
    old = Section("Dead connections in 2001", [], [epoll_2001.table(f"{NAME}-2001")])
    return [*sections, old]


def _answer(samples: Samples) -> str:
    shares = samples.shares()
    if not shares:
        return ""
    spared = [one for one, share in shares.items() if share >= SLOWER or not samples.suffers(one)]
    suffering = [f"{one} keeps {share:.0%}" for one, share in shares.items() if one not in spared]
    said = (
        f"At least {SLOWER:.0%} of their reply rate, or what lies within the spread of the rounds, "
        f"keep: {', '.join(spared) or 'none'}."
    )
    if suffering:
        said = said[:-1] + f"; of the others, {', '.join(suffering)}."
    return said


def _by_select(server: str, count: int) -> bool:
    return server == SELECT and count + 10 >= FD_SETSIZE - 100


def _remarks(results: Results, samples: Samples) -> list[str]:
    said = []
    ended = [failure for failure in results.failures if "dead" in failure]
    if limited := [one for one in ended if _by_select(str(one["server"]), int(one["dead"]))]:
        lowest = min(int(one["dead"]) for one in limited)
        said.append(
            f"{SELECT} waits by select(), which has room for {FD_SETSIZE:,} descriptors "
            f"(FD_SETSIZE) and none for {lowest:,} dead connections: it ends there by its nature."
        )
    others = Results([one for one in (*results.failures, *results.missing) if one not in ended])
    return [
        *said,
        *tables.saturated(results.samples),
        *tables.failed(results.samples),
        *tables.lost(others),
    ]


def _left(samples: Samples) -> Table:
    rows: list[list[Cell]] = []
    shares = samples.shares()
    for server in [*shares, *(one for one in samples.servers if one not in shares)]:
        most = max(count for size in samples.sizes for count in samples.reached(server, size))
        rows.append([server, float(most), *(samples.kept(server, size) for size in samples.sizes)])
    columns = [Column(f"{size:,} bytes", "%", 0, 100) for size in samples.sizes]
    return Table(
        f"{NAME}-kept",
        "What is left of the reply rate beside the most dead connections",
        [Column("server"), Column("most dead connections"), *columns],
        rows,
        tables.ours(samples.servers),
        "Against the same server without dead connections; in order of the median of the sizes.",
    )


def _ends(results: Results) -> Table | None:
    """Which servers did not get to the end, and why."""
    rows: list[list[Cell]] = []
    for failure in results.failures:
        if "dead" not in failure:
            continue
        server, reason = str(failure["server"]), str(failure["reason"])
        if _by_select(server, int(failure["dead"])):
            reason = f"select() has no descriptors from {FD_SETSIZE:,} on: {reason}"
        elif server in KNOWN_LIMITS:
            reason = f"{KNOWN_LIMITS[server]}: {reason}"
        rows.append([server, float(failure["round"] + 1), float(failure["dead"]), reason])
    columns = [Column(one) for one in ("server", "round", "dead connections", "what happened")]
    title = "Servers that did not get to the end"
    return (
        Table(f"{NAME}-ends", title, columns, rows, tables.ours(r[0] for r in rows))
        if rows
        else None
    )


def _table(samples: Samples, measure: Measure, size: int) -> Table:
    most = {
        server: one
        for server in samples.servers
        if (one := samples.found(measure.field, server, size, samples.counts[-1]))
    }
    column = Column("", measure.unit, measure.places, measure.scale)
    names = tables.ranked(most, samples.servers, highest=measure.field == "rate")
    return Table(
        f"{NAME}-{measure.field}-{size}",
        f"{measure.title} by number of dead connections, {size:,} bytes",
        [Column("server"), *(replace(column, name=f"{n:,} dead") for n in samples.counts)],
        [
            [name, *(samples.found(measure.field, name, size, n) for n in samples.counts)]
            for name in names
        ],
        tables.ours(names),
        ranking=f"{samples.counts[-1]:,} dead",
    )


def _figure(samples: Samples, measure: Measure) -> Panels:
    panels = []
    for size in samples.sizes:
        lines = []
        for server in samples.servers:
            counts = samples.reached(server, size)
            found = [(n, samples.found(measure.field, server, size, n)) for n in counts]
            lines.append(tables.line(server, [(n, one) for n, one in found if one], measure.scale))
        panels.append(
            Lines(
                f"{NAME}-{measure.field}-{size}",
                f"{size:,} bytes",
                Axis("dead connections", low=0),
                Axis(measure.axis, measure.unit, log=True),
                lines,
                marks=True,
            )
        )
    return Panels(
        f"{NAME}-{measure.field}-figure",
        f"{measure.title} by dead connections",
        panels,
        "A level line is a server that dead connections do not slow; one that ends early is a "
        "server that could not hold more.",
    )
