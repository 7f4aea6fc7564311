"""Writes a report as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from loadtests.reporting.cells import heading, is_strong, is_text, written
from loadtests.reporting.figures.figure import inline
from loadtests.reporting.glossary import explained
from loadtests.reporting.model import Figure, Listing, Section, Table
from loadtests.reporting.provenance import colophon, summary
from loadtests.stats.results import Results

LONG = 28
"""Characters from which on a cell may be broken into lines."""
MANY = 10
"""Columns, with those of ranges, from which on a table is set densely."""
HERE = Path(__file__).parent

# An image would be fetched from somewhere, and what looks like HTML is text.
_INLINE = MarkdownIt("commonmark", {"html": False}).disable("image")


def html(title: str, sections: Sequence[Section], results: Results) -> str:
    """The page, with all figures in it; `results` for where, when and how it was measured."""
    templates = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        trim_blocks=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    templates.filters["inline"] = lambda text: Markup(_INLINE.renderInline(text))
    return templates.get_template("page.html.jinja").render(
        title=title,
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        summary=summary(results),
        sections=[
            {
                "title": section.title,
                "answer": section.answer,
                "text": section.text,
                "parts": [
                    _part(part, f"figure-{number}-{place}")
                    for place, part in enumerate(section.parts, 1)
                ],
            }
            for number, section in enumerate([*sections, *colophon(results)], 1)
        ],
    )


def _part(part: Table | Figure | Listing, key: str) -> dict[str, Any]:
    """What the template needs of a part."""
    if isinstance(part, Table):
        return {"kind": "table", "part": part, **_table(part)}
    if isinstance(part, Listing):
        return {"kind": "listing", "part": part}
    return {
        "kind": "figure",
        "part": part,
        "broad": inline(part, key),
        "narrow": inline(part, f"{key}-narrow", narrow=True),
    }


def _table(table: Table) -> dict[str, Any]:
    places = range(len(table.columns))
    words = [is_text(table, place) for place in places]
    kinds = [_kind(table, place) for place in places]
    rows = [
        [
            written(cell, column, text=text)
            for cell, column, text in zip(row, table.columns, words, strict=True)
        ]
        for row in table.rows
    ]
    # The ranges have a column of their own, so that the medians stand below each other.
    ranged = [any(row[place].range for row in rows) for place in places]
    # Where there is no room for that, each stands below its median.
    dense = len(places) + sum(ranged) > MANY
    two = [not dense and one for one in ranged]
    known = {column.name: explained(heading(column)) for column in table.columns}
    return {
        "label": table.title or heading(table.columns[0]),
        "dense": dense,
        "words": {word: told for one in known.values() for word, told in one.items()},
        "heads": [
            {
                "name": column.name,
                "unit": column.unit,
                "attributes": {
                    "class": kinds[place],
                    "colspan": 2 if two[place] else None,
                    "title": "; ".join(
                        f"{word}: {told}" for word, told in known[column.name].items()
                    )
                    or None,
                    "aria-sort": "other" if column.name == table.ranking else None,
                },
            }
            for place, column in enumerate(table.columns)
        ],
        "rows": [
            {
                "strong": is_strong(table, number),
                "name": row[0].value,
                "cells": [
                    {**row[place]._asdict(), "kind": kinds[place], "two": two[place]}
                    for place in places[1:]
                ],
            }
            for number, row in enumerate(rows)
        ],
    }


def _kind(table: Table, place: int) -> str | None:
    """Words stand on the left, and those of long cells in several lines."""
    if not is_text(table, place):
        return None
    long = any(len(str(row[place] or "")) > LONG for row in table.rows)
    return "text long" if long else "text"
