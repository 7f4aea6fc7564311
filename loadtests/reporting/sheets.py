"""Writes tables and figures as CSV files, with all digits."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from loadtests.reporting.cells import heading
from loadtests.reporting.model import Bars, Cell, Figure, Lines, Listing, Section, Table, named
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
                csv.writer(file, lineterminator="\n").writerows(_rows(part))
            written.append(path)
    return written


def _rows(part: Table | Figure) -> Iterator[Row]:
    """The heading and the values; empty where nothing was measured."""
    if isinstance(part, Table):
        columns = [_column(part, place) for place in range(len(part.columns))]
        yield from ([value for cell in row for value in cell] for row in zip(*columns, strict=True))
    elif isinstance(part, Bars):
        yield ["bar", "part", *(f"{heading(part.axis)} {end}" for end in ENDS)]
        for bar in part.bars:
            for name, value in zip(part.parts or [""], bar.values, strict=True):
                yield [bar.name, name, *(value[:3] if value else (None, None, None))]
    elif isinstance(part, Lines):
        yield ["line", heading(part.x), heading(part.y), *ENDS[1:]]
        yield from _lines(part)
    else:
        axes = [heading(axis) for panel in part.panels[:1] for axis in (panel.x, panel.y)]
        yield ["panel", "line", *(axes or ["x", "y"]), *ENDS[1:]]
        for panel in part.panels:
            yield from ([panel.title, *row] for row in _lines(panel))


def _column(table: Table, place: int) -> list[Row]:
    """The heading and the cells of a column, each as three values where there are spreads."""
    column, cells = table.columns[place], [row[place] for row in table.rows]
    values = [_values(cell, column.scale) for cell in cells]
    if any(isinstance(cell, Spread) for cell in cells):
        return [[f"{heading(column)} {end}" for end in ENDS], *values]
    return [[heading(column)], *(value[:1] for value in values)]


def _values(cell: Cell, scale: float) -> list[str | float | None]:
    if isinstance(cell, Spread):
        return [value * scale for value in cell[:3]]
    return [cell if cell is None or isinstance(cell, str) else cell * scale, None, None]


def _lines(figure: Lines) -> Iterator[Row]:
    for line in figure.lines:
        bands = {x: (low, high) for x, low, high in line.band}
        for x, y in line.points:
            yield [line.name, x, y, *bands.get(x, (None, None))]
