"""Sections that compare servers, scenario by scenario, from the results of a study."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from loadtests.clients.load import SATURATED
from loadtests.reporting.model import MIB, Axis, Cell, Column, Section, Table
from loadtests.reporting.promises import Places
from loadtests.stats.results import Results, Spread
from loadtests.studies import tables

Scenarios: TypeAlias = dict[str, str]
"""The words for each scenario of a comparison, in its order; none if there is one only."""


@dataclass(frozen=True)
class Measure:
    """A column of a comparison.

    `read` gets results, scenario and server. Without `ranged` the table has medians only.
    """

    column: Column
    read: Callable[[Results, str, str], Cell]
    highest: bool = False
    ranged: bool = False

    def cell(self, results: Results, scenario: str, server: str) -> Cell:
        found = self.read(results, scenario, server)
        return found.median if isinstance(found, Spread) and not self.ranged else found

    def with_range(self) -> Measure:
        """The same with the lowest and the highest of the rounds."""
        return replace(self, ranged=True)


def median(
    field: str,
    name: str,
    unit: str = "",
    places: int = 0,
    scale: float = 1.0,
    highest: bool = False,
) -> Measure:
    """A field of the samples over all rounds; `highest` is best."""
    column = Column(name, unit, places, scale)
    return Measure(column, lambda results, *place: results.median(*place, field), highest)


def figures(
    column: Column, choose: Callable[[Sequence[float]], Cell], *names: str, empty: Cell = None
) -> Measure:
    """What `choose` makes of all values of figures, by default of that named as the column.

    It is read with an experiment instead of a scenario; `empty` stands where there are no values.
    """

    def read(results: Results, experiment: str, server: str) -> Cell:
        found = results.values(experiment, server, *(names or [column.name]))
        return choose(found) if found else empty

    return Measure(column, read)


def places(
    read: Callable[..., Spread | None], where: Mapping[str, Sequence[Any]], scale: float = 1.0
) -> Callable[[Results], Places]:
    """What a promise reads: a method of the results gets the arguments of each place."""

    def found(results: Results) -> Places:
        known = {words: read(results, *arguments) for words, arguments in where.items()}
        return {words: tables.scaled(one, scale) for words, one in known.items() if one}

    return found


def best(results: Results, scenario: str, field: str, names: Iterable[str]) -> str:
    """The one of these servers with the best median of a field; empty if none was measured."""
    known = {name: found for name in names if (found := results.median(scenario, name, field))}
    return next(iter(tables.ranked(known, known, highest=field == "rate")), "")


def noted(results: Results, experiment: str, name: str) -> dict[str, dict[str, str]]:
    """What the notes of this name say of each server, by case or check; that of its last run."""
    return {
        note["server"]: json.loads(note["text"])
        for note in results.notes
        if (note.get("experiment"), note["name"]) == (experiment, name)
    }


def ratio(field: str, against: Callable[[str], str], name: str) -> Measure:
    """A field against that of another server in the same round; empty for that server itself."""

    def read(results: Results, scenario: str, server: str) -> Spread | None:
        other = against(server)
        return None if server == other else results.ratio(scenario, server, other, field)

    return Measure(Column(name, places=2), read)


def remarks(results: Results, scenario: str, server: str) -> str:
    """What a reader should know of a server's samples in a scenario."""
    told = ["client saturated"] if is_client_limit(results, scenario, server) else []
    samples = [s for s in results.samples if (s["scenario"], s["server"]) == (scenario, server)]
    told += [f"{count:,} {kind} errors" for kind, count in tables.errors(samples).items()]
    whats = [str(one["what"]) for one in results.failures if one["server"] == server]
    if failed := sum(what.startswith(f"{scenario},") for what in whats):
        told.append(f"failed {failed} time{'s' if failed > 1 else ''}")
    return ", ".join(told)


def is_client_limit(results: Results, scenario: str, server: str) -> bool:
    """Whether the client had no time left, so that the rate is the client's."""
    busy = results.median(scenario, server, "client_busy")
    return busy is not None and busy.median >= SATURATED


CPU = median("cpu_us", "CPU per request", "µs", 2)
RATE = median("rate", "requests", "/s", highest=True)
P50 = median("p50_us", "p50", "ms", 2, 1e-3)
P99 = median("p99_us", "p99", "ms", 2, 1e-3)
PSS = median("pss", "PSS", "MiB", 1, MIB)
REMARKS = Measure(Column("remarks"), remarks)
DETAILS = (CPU.with_range(), RATE.with_range(), P50, P99, PSS, REMARKS)


def measured(results: Results, scenarios: Scenarios) -> dict[str, str]:
    return {name: words for name, words in scenarios.items() if results.servers(name)}


def _found(results: Results, scenario: str, measure: Measure) -> dict[str, Spread]:
    """The values of each server that has them, in the unit of the column."""
    read = {name: measure.read(results, scenario, name) for name in results.servers(scenario)}
    scale = measure.column.scale
    return {name: tables.scaled(s, scale) for name, s in read.items() if isinstance(s, Spread)}


def table(
    results: Results,
    name: str,
    title: str,
    scenarios: Scenarios,
    measures: Sequence[Measure],
    first: str = "server",
    *,
    limits: bool = False,
) -> Table:
    """A line for each server, all measures of each scenario; the first one of the last one ranks.

    With `limits` a note tells where the client was the limit.
    """
    lead, last = measures[0], next(reversed(scenarios))
    names = dict.fromkeys(name for scenario in scenarios for name in results.servers(scenario))
    servers = tables.ranked(_found(results, last, lead), names, highest=lead.highest)
    heads = {scenario: f"{words}: " if words else "" for scenario, words in scenarios.items()}
    columns = {
        (scenario, measure): replace(measure.column, name=head + measure.column.name)
        for scenario, head in heads.items()
        for measure in measures
    }
    limited = [
        head + ", ".join(found)
        for scenario, head in heads.items()
        if limits
        if (found := [one for one in servers if is_client_limit(results, scenario, one)])
    ]
    return tables.table(
        name,
        title,
        [first, *columns.values()],
        [[server, *(m.cell(results, one, server) for one, m in columns)] for server in servers],
        f"The client was the limit, not the server, with {'; '.join(limited)}." if limited else "",
        columns[last, lead].name,
    )


def of_figures(
    results: Results,
    experiment: str,
    name: str,
    servers: Iterable[str],
    measures: Sequence[Measure],
    ranking: str,
    first: str = "server",
    note: str = "",
) -> Table:
    """A line for each server, all measures of an experiment."""
    columns = [Column(first), *(measure.column for measure in measures)]
    rows = ([one, *(m.read(results, experiment, one) for m in measures)] for one in servers)
    return tables.table(name, "", columns, rows, note, ranking)


def section(
    results: Results,
    name: str,
    title: str,
    scenarios: Scenarios,
    measures: Sequence[Measure],
    first: str = "server",
    *,
    limits: bool = False,
    apart: bool = False,
    log: bool = False,
    detail: bool = False,
) -> Section:
    """Sentence, figure and table of a comparison; with `apart` a table for each scenario.

    With `log` the figure shows ratios as distances.
    """
    lead, column = measures[0], measures[0].column
    found = {words: _found(results, one, lead) for one, words in scenarios.items()}
    *_, (last, values) = found.items()
    what = f"{column.name}, {last}" if last else column.name
    best = f"{'more' if lead.highest else 'less'} is better"
    axis = Axis(column.name, column.unit, log, None if log else 0)
    bars = tables.bars(
        name, f"{title}: {column.name}", axis, found, highest=lead.highest, subtitle=best
    )
    shown = {name: ("", scenarios)}
    if apart:
        shown = {f"{name}-{one}": (words, {one: ""}) for one, words in scenarios.items()}
    compared = [
        table(results, own, words, some, measures, first, limits=limits)
        for own, (words, some) in shown.items()
    ]
    answer = tables.answer(what[:1].upper() + what[1:], values, column.unit, highest=lead.highest)
    return Section(title, parts=[bars, *compared], answer=answer, detail=detail)


def sections(
    results: Results, *asked: tuple[str, str, Scenarios, Sequence[Measure]], **how: Any
) -> list[Section]:
    """The sections of names, titles, scenarios and measures of which something was measured."""
    return [
        section(results, name, title, shown, measures, **how)
        for name, title, scenarios, measures in asked
        if (shown := measured(results, scenarios))
    ]


def details(
    results: Results,
    name: str,
    titles: Scenarios,
    measures: Sequence[Measure],
    first: str = "server",
) -> Section:
    parts = [
        table(results, f"{name}-{one}", title, {one: ""}, measures, first)
        for one, title in measured(results, titles).items()
    ]
    return Section("With the spread", parts=parts, detail=True)


def ending(
    results: Results,
    name: str,
    titles: Scenarios,
    measures: Sequence[Measure],
    how: Section,
) -> list[Section]:
    """The end of a report: the spread of what was measured, what was not, and the method."""
    told = [details(results, name, titles, measures)] if measured(results, titles) else []
    if lost := tables.lost(results):
        told.append(Section("Not measured", lost))
    return [*told, how]
