"""Writes tables and figures as CSV files, with all digits."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from loadtests.reporting.cells import axis_label, heading
from loadtests.reporting.model import Bars, Cell, Column, Figure, Lines, Listing, Section, Table
from loadtests.reporting.names import named
from loadtests.stats.results import Spread

Row = Sequence[str | float | None]

ENDS = ("median", "lowest", "highest")


def write(sections: Sequence[Section], folder: Path) -> list[Path]:
    """A file for each table and each figure; returns them."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for _, parts in named(sections):
        for name, part in parts:
            if isinstance(part, Listing):
                continue
            path = folder / f"{name}.csv"
            with path.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(rows(part))
            written.append(path)
    return written


def rows(part: Table | Figure) -> Iterator[Row]:
    """The heading and the values; empty where nothing was measured."""
    if isinstance(part, Table):
        yield from _table(part)
    elif isinstance(part, Lines):
        yield ["line", axis_label(part.x), axis_label(part.y), "lowest", "highest"]
        yield from _lines(part)
    elif isinstance(part, Bars):
        yield ["bar", "part", *(f"{axis_label(part.axis)} {end}" for end in ENDS)]
        yield from _bars(part)
    else:
        axes = [axis_label(axis) for panel in part.panels[:1] for axis in (panel.x, panel.y)]
        yield ["panel", "line", *(axes or ["x", "y"]), "lowest", "highest"]
        for panel in part.panels:
            yield from ([panel.title, *row] for row in _lines(panel))


def _table(table: Table) -> Iterator[Row]:
    spreads = [
        any(isinstance(row[place], Spread) for row in table.rows)
        for place in range(len(table.columns))
    ]
    yield list(_heads(table.columns, spreads))
    for row in table.rows:
        values: list[str | float | None] = []
        for cell, column, three in zip(row, table.columns, spreads, strict=True):
            values += _values(cell, column) if three else _values(cell, column)[:1]
        yield values


def _heads(columns: Iterable[Column], spreads: Iterable[bool]) -> Iterator[str]:
    for column, three in zip(columns, spreads, strict=True):
        yield from (f"{heading(column)} {end}" for end in ENDS) if three else (heading(column),)


def _values(cell: Cell, column: Column) -> list[str | float | None]:
    if isinstance(cell, Spread):
        return [value * column.scale for value in cell[:3]]
    if cell is None or isinstance(cell, str):
        return [cell, None, None]
    return [cell * column.scale, None, None]


def _lines(figure: Lines) -> Iterator[Row]:
    for line in figure.lines:
        bands = {x: (low, high) for x, low, high in line.band}
        for x, y in line.points:
            yield [line.name, x, y, *bands.get(x, (None, None))]


def _bars(figure: Bars) -> Iterator[Row]:
    for bar in figure.bars:
        for number, value in enumerate(bar.values):
            part = figure.parts[number] if figure.parts else ""
            yield [bar.name, part, *(value[:3] if value else (None, None, None))]
