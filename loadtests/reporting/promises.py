"""Figures that the documentation promises, beside measured ones."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

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

    def worst(self, measured: Places) -> str:
        """The place whose median is farthest on the wrong side."""
        choose = min if self.at_least else max
        return choose(measured, key=lambda place: measured[place].median)

    def met(self, value: float) -> bool:
        """Whether a median keeps the promise."""
        return value >= self.limit if self.at_least else value <= self.limit


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
COLUMNS = (
    Column("promise"),
    Column("promised"),
    Column("worst measured (lowest – highest)"),
    Column("where"),
    Column("kept"),
    Column("command"),
)


def table(study: str, promises: Sequence[Promise], results: Results) -> Table | None:
    """Each promise beside the worst that was measured; `None` if nothing of them was."""
    rows = [
        _row(study, promise, measured)
        for promise in promises
        if (measured := promise.read(results))
    ]
    return Table(f"{study}-promises", "Promised and measured", COLUMNS, rows) if rows else None


def answer(promises: Sequence[Promise], results: Results) -> str:
    """How many of those that were measured are kept, and by how much the others are missed."""
    measured = [(promise, found) for promise in promises if (found := promise.read(results))]
    missed = [
        (promise, value)
        for promise, found in measured
        if not promise.met(value := found[promise.worst(found)].median)
    ]
    if not missed:
        if len(measured) == 1:
            return "The one promise that was measured is kept."
        return f"All {len(measured)} promises that were measured are kept."
    named = (
        promise.what
        + (f" (by {abs(value / promise.limit - 1) * 100:.0f} %)" if promise.limit else "")
        for promise, value in missed
    )
    kept = len(measured) - len(missed)
    return f"{kept} of {len(measured)} promises are kept, not: {'; '.join(named)}."


def _row(study: str, promise: Promise, measured: Places) -> tuple[str, ...]:
    place = promise.worst(measured)
    median, low, high = (f"{value:,.{promise.places}f}" for value in measured[place][:3])
    unit = f" {promise.unit}" if promise.unit else ""
    of = f"; worst of {len(measured)}" if len(measured) > 1 else ""
    return (
        promise.what,
        f"{'≥' if promise.at_least else '≤'} {promise.limit:,g}{unit}",
        f"{median}{unit} ({low} – {high})",
        f"{place}{of}",
        "yes" if promise.met(measured[place].median) else BROKEN,
        f"`{' '.join(['python -m loadtests', study, promise.experiment]).rstrip()}`",
    )
