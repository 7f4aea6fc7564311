"""Writes sections as Markdown, and into pages that somebody has written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loadtests.errors import LabError
from loadtests.reporting.cells import heading, is_strong, is_text, written_column
from loadtests.reporting.model import Listing, Section, Table, named

WIDEST = 40
"""Characters up to which a column is filled with blanks, so that a terminal shows columns."""


def tables(sections: Sequence[Section]) -> str:
    """Text and tables only."""
    blocks: list[str] = []
    for section in sections:
        blocks += _head(section)
        blocks += [_titled(part) for part in section.parts if isinstance(part, Table)]
    return "\n\n".join(blocks)


def document(sections: Sequence[Section], figures: Path, link: str) -> str:
    """All of it; figures are written into a folder, which is at `link`."""
    return with_figure(sections, figures, link, None)[0]


def with_figure(
    sections: Sequence[Section], figures: Path, link: str, only: str | None
) -> tuple[str, list[str]]:
    """All of it without figures, and the paragraphs of the figure `only`; None: with all in it."""
    drawn = {path.stem for path in write_figures(sections, figures, only)}
    blocks: list[str] = []
    first: list[str] = []
    for section, parts in named(sections):
        blocks += _head(section)
        for name, part in parts:
            if isinstance(part, Table):
                blocks.append(_titled(part))
            elif isinstance(part, Listing):
                blocks.append(f"### {part.title}\n\n```text\n{part.text}\n```")
            elif name in drawn:
                where = blocks if only is None else first
                where.append(f"![{part.title}]({f'{link}/' if link else ''}{name}.svg)")
                if part.caption:
                    where.append(f"*{part.caption}*")
    return "\n\n".join(blocks) + "\n", first


def write_figures(sections: Sequence[Section], folder: Path, only: str | None = None) -> list[Path]:
    """A file for each figure, or for `only` that one; returns them."""
    # Only now: matplotlib is slow to load, and tables do without it.
    from loadtests.reporting.figures import figure

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for _, parts in named(sections):
        for name, part in parts:
            if not isinstance(part, (Table, Listing)) and only in (None, name):
                path = folder / f"{name}.svg"
                path.write_text(figure.document(part), encoding="utf-8")
                written.append(path)
    return written


def insert(page: Path, study: str, text: str) -> None:
    """Puts text about a study into a page that somebody has written, between its marks.

    Raises LabError if there is no such place.
    """
    begin, end = f"<!-- {study} -->", f"<!-- end of {study} -->"
    before, first, rest = page.read_text(encoding="utf-8").partition(begin)
    _, last, after = rest.partition(end)
    if not (first and last):
        raise LabError(f"{page} has no place for the tables: {begin} … {end}")
    parts = [before + begin, text.strip(), end + after]
    page.write_text("\n\n".join(parts), encoding="utf-8")


def _head(section: Section) -> list[str]:
    return [f"## {section.title}", *filter(None, [section.answer]), *section.text]


def _titled(table: Table) -> str:
    parts = [f"### {table.title}" if table.title else "", lines(table), table.note]
    return "\n\n".join(part for part in parts if part)


def lines(table: Table) -> str:
    """The table alone."""
    columns = []
    for place, column in enumerate(table.columns):
        written = written_column(table, place)
        cells = [f"{value} ({span})" if span else value for value, span in written]
        if place == 0:
            cells = [f"**{c}**" if is_strong(table, n) else c for n, c in enumerate(cells)]
        cells = [_escaped(cell) for cell in [heading(column), *cells]]
        width = min(max(3, *map(len, cells)), WIDEST)
        text = is_text(table, place)
        cells.insert(1, f"{'' if text else ':':->{width}}")
        columns.append([f"{cell:{'<' if text else '>'}{width}}" for cell in cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in zip(*columns, strict=True))


def _escaped(cell: str) -> str:
    """A cell on one line, in which nothing ends it or begins a tag of HTML."""
    return " ".join(cell.split()).replace("|", "\\|").replace("<", "&lt;")
