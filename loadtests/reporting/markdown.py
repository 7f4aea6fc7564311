"""Writes sections as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loadtests.reporting.cells import heading, is_strong, is_text, written
from loadtests.reporting.model import Listing, Section, Table
from loadtests.reporting.names import named

WIDEST = 40
"""Characters up to which a column is filled with blanks, so that a terminal shows columns."""


def tables(sections: Sequence[Section], level: int = 2) -> str:
    """Text and tables only; `level` is that of the headings of sections."""
    return "\n\n".join(
        block
        for section in sections
        for block in (
            f"{'#' * level} {section.title}",
            *filter(None, [section.answer]),
            *section.text,
            *(_titled(part) for part in section.parts if isinstance(part, Table)),
        )
    )


def document(sections: Sequence[Section], figures: Path, link: str) -> str:
    """All of it; the figures are written into the folder `figures`, which is at `link`."""
    write_figures(sections, figures)
    blocks = []
    for section, parts in named(sections):
        blocks += [f"## {section.title}", *filter(None, [section.answer]), *section.text]
        for name, part in parts:
            if isinstance(part, Table):
                blocks.append(_titled(part))
                continue
            if isinstance(part, Listing):
                blocks.append(f"### {part.title}\n\n```text\n{part.text}\n```")
                continue
            blocks.append(f"![{part.title}]({f'{link}/' if link else ''}{name}.svg)")
            if part.caption:
                blocks.append(f"*{part.caption}*")
    return "\n\n".join(blocks) + "\n"


def write_figures(sections: Sequence[Section], folder: Path) -> list[Path]:
    """A file for each figure; returns them."""
    # Only now: matplotlib is slow to load, and tables do without it.
    from loadtests.reporting.figures import figure

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for _, parts in named(sections):
        for name, part in parts:
            if not isinstance(part, (Table, Listing)):
                path = folder / f"{name}.svg"
                path.write_text(figure.document(part), encoding="utf-8")
                written.append(path)
    return written


def _titled(table: Table) -> str:
    parts = [f"### {table.title}" if table.title else "", lines(table), table.note]
    return "\n\n".join(part for part in parts if part)


def lines(table: Table) -> str:
    """The table alone."""
    words = [is_text(table, place) for place in range(len(table.columns))]
    rows = [[heading(column) for column in table.columns]]
    for number, row in enumerate(table.rows):
        cells = []
        for cell, column, text in zip(row, table.columns, words, strict=True):
            value, span = written(cell, column, text=text)
            cells.append(f"{value} ({span})" if span else value)
        if is_strong(table, number):
            cells[0] = f"**{cells[0]}**"
        rows.append(cells)
    rows = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    widths = [min(max(3, *map(len, column)), WIDEST) for column in zip(*rows, strict=True)]
    rule = [
        "-" * width if text else "-" * (width - 1) + ":"
        for width, text in zip(widths, words, strict=True)
    ]
    return "\n".join(
        "| "
        + " | ".join(
            cell.ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(row, widths, words, strict=True)
        )
        + " |"
        for row in [rows[0], rule, *rows[1:]]
    )
