"""Sentences of the pages that `docs.py` makes, with numbers of tables in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from loadtests.errors import LabError
from loadtests.reporting.cells import brief, number
from loadtests.reporting.model import Cell, Section, Table
from loadtests.stats.results import Spread

THREADS = "poorhttp threading 8"


Takeaway: TypeAlias = "Callable[[Tables], str]"


class Tables:
    """The tables of a report, by their names: of several of a name, the first."""

    def __init__(self, sections: Sequence[Section]) -> None:
        parts = [part for section in sections for part in section.parts]
        self._tables = {part.name: part for part in reversed(parts) if isinstance(part, Table)}

    def columns(self, table: str) -> list[str]:
        """The names of the columns; none if there is no such table."""
        return [one.name for one in self._tables[table].columns] if table in self._tables else []

    def column(self, table: str, column: str) -> list[tuple[Sequence[Cell], float]]:
        """The rows with a number or a median in this column, and that in the column's unit."""
        names = self.columns(table)
        if column not in names:
            return []
        found, place = self._tables[table], names.index(column)
        cells = ((row, row[place]) for row in found.rows)
        medians = ((row, one.median if isinstance(one, Spread) else one) for row, one in cells)
        scale = found.columns[place].scale
        return [(row, one * scale) for row, one in medians if isinstance(one, float | int)]

    def value(self, table: str, column: str, *row: str) -> float:
        """The number of the row that begins with these cells.

        Raises LabError if the results have none.
        """
        for cells, found in self.column(table, column):
            first = (number(one) if isinstance(one, float | int) else one for one in cells)
            if all(one == asked for one, asked in zip(first, row, strict=False)):
                return found
        raise LabError(f"the results have no {column!r} of {' '.join(row)} in table {table!r}")


def sentence(table: str, column: str, template: str) -> Takeaway:
    """A sentence with values of a table: `{row}`, or `{row | column}`, or `{row | column | table}`.

    A row is the cells with which it begins, with ` & ` between them.
    """

    def write(tables: Tables) -> str:
        def value(match: re.Match[str]) -> str:
            row, *other = match[1].split(" | ")
            place = [*(other or [column]), table]
            return brief(tables.value(place[1], place[0], *row.split(" & ")))

        return re.sub(r"\{(.+?)\}", value, template)

    return write


def serving(tables: Tables) -> str:
    name, column = "cpu-hello-hello-64", "CPU per request"
    theirs, ours = (tables.value(name, column, one) for one in ("gunicorn gthread 8", THREADS))
    template = (
        "A small response costs poorhttp (threading) {poorhttp threading 8} µs of CPU time, bjoern "
        "{bjoern} µs and gunicorn gthread {gunicorn gthread 8} µs, which is "
        f"{brief(theirs / ours)} times as much as poorhttp."
    )
    return sentence(name, column, template)(tables)


def cluster(tables: Tables) -> str:
    names = "cluster-rolling-reload", "cluster-rolling-replace"
    failed, sent = (
        number(sum(count for name in names for _, count in tables.column(name, column)))
        for column in ("failed", "requests")
    )
    return (
        f"While three hosts behind a load balancer were reloaded and replaced in turn, {failed} of "
        f"{sent} requests failed."
    )


def adverse(tables: Tables) -> str:
    names = (f"{name}-compared" for name in ("dead", "drip", "stalled"))
    column = "requests/s against none"
    least = min(ratio for name in names for _, ratio in tables.column(name, column))
    return (
        f"Beside thousands of clients that stay silent, send a byte each second or do not read, "
        f"other clients get at least {brief(least * 100)} % of the requests per second that they "
        f"get without them."
    )


def soak(tables: Tables) -> str:
    def both(row: str) -> str:
        modes = tables.columns("soak-outcome")[1:]
        return number(sum(tables.value("soak-outcome", mode, row) for mode in modes))

    return (
        f"Under faulty applications, hostile clients and processes that were killed or replaced, "
        f"{both('answers that were right')} responses were right and "
        f"{both('answers that were wrong, crossed or missing')} were wrong, crossed or missing."
    )


def dead(tables: Tables) -> str:
    def times(server: str, dead: str) -> str:
        table = "deadconn-cpu_us-128"
        ratio = tables.value(table, dead, server) / tables.value(table, "0 dead", server)
        return f"{server} beside {dead} {ratio:.2f}"

    both = times(THREADS, "18,000 dead"), times("waitress 8 threads, poll", "3,000 dead")
    return f"CPU time of a response, in times of that without: {', '.join(both)}"


def sizes(tables: Tables) -> str:
    names = (
        "poorhttp single",
        "poorhttp forking 4",
        THREADS,
        "lighttpd + 4 × single",
        "Apache mod_wsgi prefork",
    )
    sizes = (tables.value("memory-ps", "size of all processes", name) / 1024 for name in names)
    return ", ".join(f"{name} {size:.1f}" for name, size in zip(names, sizes, strict=True)) + " MiB"


WRITERS: dict[str, Takeaway] = {
    one.__name__: one for one in (serving, cluster, adverse, soak, dead, sizes)
}
"""Writers of sentences for which a template is not enough, by their names in INI files."""


def written(own: Mapping[str, str], template: str) -> Takeaway:
    """What writes the sentence of an entry: its `takeaway`, or the text of this name."""
    writer = WRITERS.get(own.get("takeaway", ""))
    return writer or sentence(own["table"], own["column"], own[template])
