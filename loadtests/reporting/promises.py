"""Figures that the documentation promises, beside measured ones."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from loadtests.programs import COMMAND
from loadtests.reporting.model import Column, Table
from loadtests.stats.results import Results, Spread

Places: TypeAlias = dict[str, Spread]
"""Measured values by the words for where: a mode, a document, a pair of servers."""


@dataclass(frozen=True)
class Promise:
    """`limit` is the highest value allowed, or the lowest if `at_least`, in every place.

    `experiment` is the part of the study that measures it, as on the command line. `places` are the
    decimals of its values.
    """

    experiment: str
    what: str
    limit: float
    unit: str
    read: Callable[[Results], Places]
    at_least: bool = False
    places: int = 2


def mode(server: str) -> str:
    """The words for one of our servers as a place."""
    return server.removeprefix("poorhttp ")


def of_figures(
    experiment: str,
    what: str,
    limit: float,
    unit: str,
    servers: Mapping[str, str],
    names: Sequence[str],
    choose: Callable[[Iterable[float]], float] = statistics.median,
    *,
    scale: float = 1,
    at_least: bool = False,
    places: int = 2,
) -> Promise:
    """A promise on figures of servers; `choose` makes one of the values of all rounds.

    `servers` has the word for each.
    """

    def read(results: Results) -> Places:
        measured = {}
        for server, word in servers.items():
            if found := [value * scale for value in results.values(experiment, server, *names)]:
                measured[word] = Spread(choose(found), min(found), max(found), len(found))
        return measured

    return Promise(experiment, what, limit, unit, read, at_least, places)


def none(experiment: str, what: str, servers: Mapping[str, str], *names: str) -> Promise:
    """That figures are 0 in all rounds."""
    return of_figures(experiment, what, 0, "", servers, names, sum, places=0)


def all_finished(servers: Collection[str]) -> Promise:
    """That no round of these servers came to nothing."""

    def read(results: Results) -> Places:
        if not any(figure["server"] in servers for figure in results.figures):
            return {}
        failed = [f["what"] for f in results.failures if f["server"] in servers]
        return dict.fromkeys(failed, Spread(1, 1, 1, 1)) or {"all": Spread(0, 0, 0, 1)}

    return Promise("", "rounds that came to nothing", 0, "", read, places=0)


BROKEN = "**no**"
HEADS = "promise", "promised", "worst measured (lowest – highest)", "where", "kept", "command"
COLUMNS = tuple(map(Column, HEADS))


def table(study: str, promises: Sequence[Promise], results: Results) -> Table | None:
    """Each promise beside the worst that was measured; `None` if nothing of them was."""
    rows = []
    for promise, where, found, kept in _judged(promises, results):
        median, low, high = (f"{value:,.{promise.places}f}" for value in found[:3])
        unit = f" {promise.unit}" if promise.unit else ""
        rows.append(
            (
                promise.what,
                f"{'≥' if promise.at_least else '≤'} {promise.limit:,g}{unit}",
                f"{median}{unit} ({low} – {high})",
                where,
                "yes" if kept else BROKEN,
                f"`{' '.join([COMMAND, study, promise.experiment]).rstrip()}`",
            )
        )
    return Table(f"{study}-promises", "", COLUMNS, rows) if rows else None


def answer(promises: Sequence[Promise], results: Results) -> str:
    """How many of those that were measured are kept, and by how much the others are missed."""
    judged = list(_judged(promises, results))
    missed = [
        promise.what
        + (f" (by {abs(found.median / promise.limit - 1) * 100:.0f} %)" if promise.limit else "")
        for promise, _, found, kept in judged
        if not kept
    ]
    if missed:
        kept = len(judged) - len(missed)
        return f"{kept} of {len(judged)} promises are kept. Not kept: {'; '.join(missed)}."
    if len(judged) == 1:
        return "The one promise that was measured is kept."
    return f"All {len(judged)} promises that were measured are kept."


def _judged(
    promises: Sequence[Promise], results: Results
) -> Iterator[tuple[Promise, str, Spread, bool]]:
    """Those that were measured: the place farthest on the wrong side, and if it is kept there."""
    for promise in promises:
        if measured := promise.read(results):
            choose = min if promise.at_least else max
            place, found = choose(measured.items(), key=lambda one: one[1].median)
            where = f"{place}; worst of {len(measured)}" if len(measured) > 1 else place
            value, limit = found.median, promise.limit
            yield promise, where, found, value >= limit if promise.at_least else value <= limit
