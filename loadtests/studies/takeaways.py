"""Sentences of the pages that `docs.py` makes, with numbers of tables in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from loadtests.errors import LabError
from loadtests.reporting.cells import brief, number
from loadtests.reporting.model import Section, Table
from loadtests.stats.results import Spread

THREADS = "poorhttp threading 8"


Takeaway: TypeAlias = "Callable[[Tables], str]"


class Tables:
    """The tables of a report, by their names."""

    def __init__(self, sections: Sequence[Section]) -> None:
        self._tables: dict[str, Table] = {}
        for section in sections:
            for part in section.parts:
                if isinstance(part, Table):
                    self._tables.setdefault(part.name, part)

    def value(self, table: str, column: str, *row: str) -> float:
        """The number, or the median, of the row that begins with these cells, in the column's unit.

        Raises LabError if the results have none.
        """
        found = self._tables.get(table)
        names = [one.name for one in found.columns] if found else []
        if found and column in names:
            place = names.index(column)
            for cells in found.rows:
                first = (number(one) if isinstance(one, float | int) else one for one in cells)
                if all(one == asked for one, asked in zip(first, row, strict=False)):
                    cell, scale = cells[place], found.columns[place].scale
                    if isinstance(cell, Spread):
                        return cell.median * scale
                    if isinstance(cell, float | int):
                        return cell * scale
        raise LabError(f"the results have no {column!r} of {' '.join(row)} in table {table!r}")

    def columns(self, table: str) -> list[str]:
        """The names of the columns behind the first one."""
        return [one.name for one in self._tables[table].columns[1:]]

    def sum(self, table: str, column: str) -> float:
        found = self._tables[table]
        return sum(self.value(table, column, str(row[0])) for row in found.rows)

    def least(self, table: str, column: str) -> float:
        found = self._tables[table]
        place = [one.name for one in found.columns].index(column)
        medians = [row[place] for row in found.rows]
        return min(one.median for one in medians if isinstance(one, Spread))

    def times(self, table: str, column: str, row: str, other: str) -> str:
        """How many times the value of the other row this one is."""
        return brief(self.value(table, column, row) / self.value(table, column, other))


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
    times = tables.times(name, column, "gunicorn gthread 8", THREADS)
    template = (
        "A small response costs poorhttp (threading) {poorhttp threading 8} µs of CPU time, bjoern "
        "{bjoern} µs and gunicorn gthread {gunicorn gthread 8} µs, which is "
        f"{times} times as much as poorhttp."
    )
    return sentence(name, column, template)(tables)


def cluster(tables: Tables) -> str:
    names = "cluster-rolling-reload", "cluster-rolling-replace"
    failed, sent = (
        number(sum(tables.sum(name, column) for name in names)) for column in ("failed", "requests")
    )
    return (
        f"While three hosts behind a load balancer were reloaded and replaced in turn, {failed} of "
        f"{sent} requests failed."
    )


def adverse(tables: Tables) -> str:
    least = min(
        tables.least(f"{name}-compared", "requests/s against none")
        for name in ("dead", "drip", "stalled")
    )
    return (
        f"Beside thousands of clients that stay silent, send a byte each second or do not read, "
        f"other clients get at least {brief(least * 100)} % of the requests per second that they "
        f"get without them."
    )


def soak(tables: Tables) -> str:
    def both(row: str) -> str:
        modes = tables.columns("soak-outcome")
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
