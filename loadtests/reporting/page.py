"""Writes a report as one self-contained HTML page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from loadtests.reporting.cells import heading, is_strong, is_text, written_column
from loadtests.reporting.figures.figure import inline
from loadtests.reporting.model import Listing, Section, Table
from loadtests.reporting.provenance import colophon, summary
from loadtests.stats.results import Results

LONG = 28
"""Characters from which on a cell may be broken into lines."""
MANY = 10
"""Columns, with those of ranges, from which on a table is set densely."""
WORDS = {
    "ans t": "time from the beginning of a request to the first 15 bytes of its answer",
    "res t": "time from the beginning of a request to the end of its answer",
    "ans/s": "how many times of an answer fit into a second",
    "res/s": "how many times of a whole page fit into a second",
    "real/s": "answers per second, with what the client does between them",
    "p50": "half of all requests took at most this long",
    "p90": "90 % of all requests took at most this long",
    "p99": "99 % of all requests took at most this long",
    "client busy": "share of its core that the client used; near 100 % the client is the limit",
    "CPU per request": "processor time of all processes of the server",
    "PSS": "memory, with each shared page divided among the processes that map it",
    "USS": "memory that only this process has: what its end would free",
    "RSS": "memory in use, with each shared page counted whole",
    "vsize": "address space, also of what is not in memory",
    "repeated SYN": "connections that had to ask again, a second or more later",
    "F at 95 %": "an F above this one is chance in 5 % of all experiments only",
}
"""Explanations of the short names of columns, by the words with which a heading names them."""
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
            {**vars(section), "parts": list(_parts(section, number))}
            for number, section in enumerate([*sections, *colophon(results)], 1)
        ],
    )


def _parts(section: Section, number: int) -> Iterator[dict[str, Any]]:
    """What the template needs of each part."""
    for place, part in enumerate(section.parts, 1):
        key = f"figure-{number}-{place}"
        if isinstance(part, Table):
            yield {"kind": "table", "part": part, **_table(part)}
        elif isinstance(part, Listing):
            yield {"kind": "listing", "part": part}
        else:
            wide, narrow = inline(part, key), inline(part, f"{key}-narrow", narrow=True)
            yield {"kind": "figure", "part": part, "broad": wide, "narrow": narrow}


def _table(table: Table) -> dict[str, Any]:
    cells = [written_column(table, place) for place in range(len(table.columns))]
    # The ranges have a column of their own, so that the medians stand below each other.
    two = [any(cell.range for cell in own) for own in cells]
    # Where there is no room for that, each stands below its median.
    dense = len(cells) + sum(two) > MANY
    columns: list[dict[str, Any]] = [
        {
            "column": column,
            "kind": _kind(table, place),
            "two": two[place] and not dense,
            "words": _explained(heading(column)),
        }
        for place, column in enumerate(table.columns)
    ]
    return {
        "label": table.title or heading(table.columns[0]),
        "dense": dense,
        "words": {word: told for one in columns for word, told in one["words"].items()},
        "columns": columns,
        "rows": [(is_strong(table, n), row) for n, row in enumerate(zip(*cells, strict=True))],
    }


def _kind(table: Table, place: int) -> str | None:
    """Words stand on the left, and those of long cells in several lines."""
    if not is_text(table, place):
        return None
    long = any(len(str(row[place] or "")) > LONG for row in table.rows)
    return "text long" if long else "text"


def _explained(heading: str) -> dict[str, str]:
    """The short names in a heading with their explanations."""
    return {
        word: told
        for word, told in WORDS.items()
        if re.search(rf"(?<![\w/]){re.escape(word)}(?!\w)", heading, re.IGNORECASE)
    }
