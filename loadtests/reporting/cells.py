"""Formatting of table cells."""

from __future__ import annotations

import math
from typing import NamedTuple

from loadtests.reporting.model import Axis, Cell, Column, Table
from loadtests.stats.results import Spread

NOTHING = "–"
"""Stands where a number would, if it was not measured."""
MINUS = "\N{MINUS SIGN}"


class Written(NamedTuple):
    """A cell: the number or the text, and from where to where the rounds went if they differ."""

    value: str
    range: str = ""


def number(value: float, places: int = 0) -> str:
    """With thousands separators and a true minus; a dash if it is no number."""
    if not math.isfinite(value):
        return NOTHING
    # What rounds to zero has no sign.
    return f"{round(value, places) + 0.0:,.{places}f}".replace("-", MINUS)


def written(cell: Cell, column: Column, *, text: bool = False) -> Written:
    """A cell of a column; `text` says that it is one of text, in which nothing is left empty."""
    if cell is None:
        return Written("" if text else NOTHING)
    if isinstance(cell, str):
        return Written(cell)
    if not isinstance(cell, Spread):
        return Written(number(cell * column.scale, column.places))
    median, low, high = (number(value * column.scale, column.places) for value in cell[:3])
    return Written(median, f"{low} – {high}" if cell.low != cell.high else "")


def heading(of: Column | Axis) -> str:
    name = of.name if isinstance(of, Column) else of.label
    between = "" if of.unit.startswith("/") else ", "
    return f"{name}{between}{of.unit}" if of.unit else name


def is_text(table: Table, place: int) -> bool:
    """Whether the column at this place holds words: the first does, and one of texts only."""
    cells = [row[place] for row in table.rows if place < len(row) and row[place] is not None]
    return place == 0 or (bool(cells) and all(isinstance(cell, str) for cell in cells))


def written_column(table: Table, place: int) -> list[Written]:
    column, text = table.columns[place], is_text(table, place)
    return [written(row[place], column, text=text) for row in table.rows]


def is_strong(table: Table, place: int) -> bool:
    """Whether this row is one of ours."""
    return str(table.rows[place][0]) in table.strong


def brief(value: float) -> str:
    """A number as a person would say it, of three digits or whole: 1.25, 14.3, 320, 12,400."""
    size = abs(value)
    if not math.isfinite(value) or size >= 100 or value == 0:
        return number(value)
    text = number(value, min(2 - math.floor(math.log10(size)), 6))
    return text.rstrip("0").rstrip(".") if "." in text else text
