"""The tables of `poorhttp top`: rows of the status document, sorted, and cut to the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from poorhttp.errors import visible
from poorhttp.plugins.monitor.derived import units
from poorhttp.plugins.monitor.derived.rates import Recent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.monitor.admin.model import Finished, Status

#: Cells that the last column has at least; other columns are left out for it.
LEAST_REST = 24

#: A cell: the value by which rows are sorted, and its text.
Cell = tuple["float | str", str]

Row = Sequence[Cell]


class Column:
    """A column.

    Attributes:
        heading: its name.
        is_number: it is aligned to the right, and sorted with the largest first.
        weight: columns with the lowest weight are left out where there is no room.
    """

    def __init__(self, heading: str, weight: int, *, is_number: bool = True) -> None:
        self.heading = heading
        self.weight = weight
        self.is_number = is_number


class Table:
    """A table, and by which column it is sorted.

    Attributes:
        title: names it.
        is_descending: the largest value comes first.
    """

    def __init__(
        self,
        title: str,
        columns: Sequence[Column],
        sorted_by: int,
        rows: Callable[[Status, Recent], Iterable[Row]],
        *,
        is_descending: bool = True,
    ) -> None:
        self.title = title
        self._columns = columns
        self._rows = rows
        self._sorted_by = sorted_by
        self.is_descending = is_descending

    def sort_by(self, step: int) -> None:
        """Sort by a column so many places further to the right."""
        self._sorted_by = (self._sorted_by + step) % len(self._columns)
        self.is_descending = self._columns[self._sorted_by].is_number

    def rows(self, status: Status, recent: Recent) -> list[Row]:
        """Return the sorted rows."""
        found = list(self._rows(status, recent))
        found.sort(key=lambda row: row[self._sorted_by][0], reverse=self.is_descending)
        return found

    def lines(
        self, rows: Sequence[Row], width: int, offset: int, room: int
    ) -> tuple[str, list[str]]:
        """Return the heading and the lines from row `offset` on, at most `room` of them."""
        headings = [column.heading for column in self._columns]
        headings[self._sorted_by] += "↓" if self.is_descending else "↑"
        texts = [[visible(text) for _, text in row] for row in rows]
        widths = [max(map(len, cells)) for cells in zip(headings, *texts, strict=True)]
        shown = list(range(len(widths)))
        optional = [each for each in shown[:-1] if each != self._sorted_by]
        optional.sort(key=lambda each: self._columns[each].weight)
        # The last one gets the rest.
        while optional and sum(widths[each] + 2 for each in shown[:-1]) > width - LEAST_REST:
            shown.remove(optional.pop(0))

        def line(cells: Sequence[str]) -> str:
            parts = [
                cells[each].rjust(widths[each])
                if self._columns[each].is_number
                else cells[each].ljust(widths[each])
                for each in shown[:-1]
            ]
            return "  ".join([*parts, cells[shown[-1]]])[:width]

        return line(headings), [line(cells) for cells in texts[offset : offset + room]]


def _number(value: float, text: str | None = None) -> Cell:
    return value, units.count(value) if text is None else text


def _workers(status: Status, recent: Recent) -> Iterable[Row]:
    for service in status["services"]:
        for worker in service["workers"]:
            cpu = recent.cpu(worker["pid"])
            if cpu is None:
                cpu = worker["cpu"] / worker["age"] if worker["age"] > 0 else 0.0
            silent = worker["state"] == "serving" and not worker["answers"]
            quiet = "full" if worker["full"] else "silent"
            busy = sorted(worker["working_on"], key=lambda each: -each["seconds"])
            work = ", ".join(f"{units.seconds(each['seconds'])} {each['line']}" for each in busy)
            state = quiet if silent else worker["state"]
            yield (
                _number(worker["pid"], str(worker["pid"])),
                (service["name"], service["name"]),
                (state, state),
                _number(worker["age"], units.age(worker["age"])),
                _number(worker["requests"]),
                _number(worker["in_flight"]),
                _number(worker["connections"]),
                _number(cpu, units.percent(cpu)),
                _number(worker["rss"], units.octets(worker["rss"])),
                _number(worker["pss"], units.octets(worker["pss"])),
                (busy[0]["seconds"] if busy else 0.0, work),
            )


def _requests(status: Status, recent: Recent) -> Iterable[Row]:
    for service in status["services"]:
        for worker in service["workers"]:
            for each in worker["working_on"]:
                yield (
                    _number(each["seconds"], units.seconds(each["seconds"])),
                    (service["name"], service["name"]),
                    _number(worker["pid"], str(worker["pid"])),
                    _number(each["thread"], str(each["thread"] or "")),
                    _number(each["number"], str(each["number"])),
                    (each["id"], each["id"]),
                    ("upgraded" if each["upgraded"] else "streaming" * each["streaming"],) * 2,
                    (each["line"], each["line"]),
                )


def _finished(found: Iterable[tuple[str, Finished]], now: float) -> Iterable[Row]:
    for name, each in found:
        whole = each["waited"] + each["application"] + each["sending"]
        ago = max(0.0, now - each["when"])
        yield (
            _number(whole, units.seconds(whole)),
            _number(each["waited"], units.seconds(each["waited"])),
            _number(each["application"], units.seconds(each["application"])),
            _number(each["sending"], units.seconds(each["sending"])),
            _number(each["status"], str(each["status"])),
            _number(each["sent"], units.octets(each["sent"])),
            _number(ago, f"{units.age(ago)} ago"),
            (name, name),
            _number(each["pid"], str(each["pid"])),
            (each["id"], each["id"]),
            (each["line"], each["line"]),
        )


def _slowest(status: Status, recent: Recent) -> Iterable[Row]:
    found = (
        (service["name"], each) for service in status["services"] for each in service["slowest"]
    )
    return _finished(found, status["now"])


def _errors(status: Status, recent: Recent) -> Iterable[Row]:
    found = (
        (service["name"], each) for service in status["services"] for each in service["errors"]
    )
    return _finished(found, status["now"])


def _refusals(status: Status, recent: Recent) -> Iterable[Row]:
    for service in status["services"]:
        for each in service["refusals"]:
            ago = max(0.0, status["now"] - each["when"])
            yield (
                _number(ago, f"{units.age(ago)} ago"),
                _number(each["status"], str(each["status"])),
                (each["reason"], each["reason"]),
                (each["client"], each["client"]),
                (service["name"], service["name"]),
                _number(each["pid"], str(each["pid"])),
                (each["id"], each["id"]),
                (each["line"], each["line"]),
            )


FINISHED = (
    Column("time", 9),
    Column("waiting", 5),
    Column("application", 6),
    Column("sending", 4),
    Column("status", 8),
    Column("sent", 2),
    Column("ended", 7),
    Column("service", 3, is_number=False),
    Column("PID", 3),
    Column("ID", 1, is_number=False),
    Column("request", 9, is_number=False),
)

#: The key of each table, and what makes it.
TABLES: dict[str, Callable[[], Table]] = {
    "w": lambda: Table(
        "workers",
        (
            Column("PID", 9),
            Column("service", 3, is_number=False),
            Column("state", 8, is_number=False),
            Column("age", 2),
            Column("requests", 4),
            Column("in flight", 7),
            Column("connections", 3),
            Column("CPU", 6),
            Column("RSS", 5),
            Column("PSS", 1),
            Column("works on", 9, is_number=False),
        ),
        7,
        _workers,
    ),
    "r": lambda: Table(
        "requests in flight",
        (
            Column("time", 9),
            Column("service", 3, is_number=False),
            Column("PID", 6),
            Column("thread", 2),
            Column("number", 4),
            Column("ID", 1, is_number=False),
            Column("", 5, is_number=False),
            Column("request", 9, is_number=False),
        ),
        0,
        _requests,
    ),
    "s": lambda: Table("slowest requests", FINISHED, 0, _slowest),
    "e": lambda: Table("errors", FINISHED, 6, _errors, is_descending=False),
    "f": lambda: Table(
        "refusals",
        (
            Column("refused", 7),
            Column("status", 9),
            Column("reason", 8, is_number=False),
            Column("client", 5, is_number=False),
            Column("service", 3, is_number=False),
            Column("PID", 4),
            Column("ID", 1, is_number=False),
            Column("request", 9, is_number=False),
        ),
        0,
        _refusals,
        is_descending=False,
    ),
}
