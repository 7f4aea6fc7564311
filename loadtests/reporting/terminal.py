"""Prints a report in short: answers, rankings, promises that were not kept, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from rich.bar import Bar
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape
from rich.table import Table as Grid

from loadtests.reporting import promises
from loadtests.reporting.cells import heading, is_strong, written
from loadtests.reporting.model import Section, Table
from loadtests.stats.results import Spread

BEST = 10
"""So many rows of a ranking are printed, and those of ours that come after them."""
WIDTH = 30
"""Characters of the longest bar."""


def short(told: Sequence[Section]) -> bool:
    """Whether a report says what its answers or rankings are."""
    return any(section.answer or _rankings(section) for section in told)


def tell(told: Sequence[Section], missing: Sequence[Section]) -> None:
    """Prints the report `told`; `missing` says what was left out and what failed."""
    console = Console(highlight=False)
    for section in told:
        rankings = _rankings(section)
        if not section.detail and (section.answer or rankings):
            console.print(f"\n[bold]{escape(section.title)}[/]")
            if section.answer:
                console.print(Markdown(section.answer))
            for table in rankings:
                console.print(_grid(table), "")
    for part in (part for section in told for part in section.parts):
        if isinstance(part, Table) and tuple(part.columns) == promises.COLUMNS:
            for promise, promised, measured, where, kept, _ in part.rows:
                if kept == promises.BROKEN:
                    what = f"{promise}: promised {promised}, measured {measured}, {where}"
                    console.print(f"[bold red]not kept[/]: {escape(what)}", soft_wrap=True)
    for section in missing:
        console.print(f"\n[bold]{escape(section.title)}[/]")
        for paragraph in section.text:
            console.print(escape(paragraph), soft_wrap=True)
        for part in section.parts:
            if isinstance(part, Table):
                for name, *cells in part.rows:
                    why = ", ".join(str(cell) for cell in cells if isinstance(cell, str))
                    console.print(f"{escape(str(name))}: {escape(why)}", soft_wrap=True)


def _rankings(section: Section) -> list[Table]:
    return [part for part in section.parts if isinstance(part, Table) and part.ranking]


def _grid(table: Table) -> Grid:
    """Name, value and bar of each row; ours in bold."""
    place = [column.name for column in table.columns].index(table.ranking)
    column = table.columns[place]
    medians = [c.median if isinstance(c := row[place], Spread) else c for row in table.rows]
    values = [one if isinstance(one, (int, float)) else 0.0 for one in medians]
    most = max(map(abs, values), default=0.0)
    grid = Grid("", heading(column), "", title=escape(table.title), box=None, title_justify="left")
    grid.columns[1].justify = "right"
    for number, (row, value) in enumerate(zip(table.rows, values, strict=True)):
        strong = is_strong(table, number)
        if number < BEST or strong:
            grid.add_row(
                escape(str(row[0])),
                written(row[place], column).value,
                Bar(most, 0, abs(value), width=WIDTH) if value else "",
                style="bold green" if strong else "",
            )
    if left := len(table.rows) - grid.row_count:
        grid.add_row(f"… {left} more", style="dim")
    return grid
