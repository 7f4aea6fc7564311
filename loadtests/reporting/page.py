"""Writes a report as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from markdown_it import MarkdownIt

from loadtests.reporting.cells import heading, is_strong, is_text, written
from loadtests.reporting.figures.figure import inline
from loadtests.reporting.model import Figure, Listing, Section, Table
from loadtests.reporting.provenance import colophon, summary
from loadtests.stats.results import Results

LONG = 28
"""Characters from which on a cell may be broken into lines."""
STYLE = Path(__file__).with_name("page.css")

# An image would be fetched from somewhere, and what looks like HTML is text.
_INLINE = MarkdownIt("commonmark", {"html": False}).disable("image")


def html(title: str, sections: Sequence[Section], results: Results) -> str:
    """The page, with all figures in it; `results` for where, when and how it was measured."""
    told = [*sections, *colophon(results)]
    contents = "\n".join(
        f'<li><a href="#section-{number}">{escape(section.title)}</a></li>'
        for number, section in enumerate(told, 1)
    )
    body = "\n".join(
        line for number, section in enumerate(told, 1) for line in _section(number, section)
    )
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{STYLE.read_text(encoding="utf-8")}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p>{escape(summary(results))}</p>
</header>
<nav aria-label="Contents">
<ol>
{contents}
</ol>
</nav>
<main>
{body}
</main>
</body>
</html>
"""


def _section(number: int, section: Section) -> Iterator[str]:
    yield f'<section id="section-{number}">'
    yield f"<h2>{escape(section.title)}</h2>"
    for paragraph in filter(None, [section.answer, *section.text]):
        yield f"<p>{_inline(paragraph)}</p>"
    for place, part in enumerate(section.parts, 1):
        if isinstance(part, Table):
            yield from _table(part)
        elif isinstance(part, Listing):
            yield f"<figure><figcaption><h3>{escape(part.title)}</h3></figcaption>"
            yield f'<pre class="wide">{escape(part.text)}</pre></figure>'
        else:
            yield from _figure(part, f"figure-{number}-{place}")
    yield "</section>"


def _inline(text: str) -> str:
    return str(_INLINE.renderInline(text))


def _table(table: Table) -> Iterator[str]:
    words = [is_text(table, place) for place in range(len(table.columns))]
    classes = [_kind(table, place) for place in range(len(table.columns))]
    rows = [
        [
            written(cell, column, text=text)
            for cell, column, text in zip(row, table.columns, words, strict=True)
        ]
        for row in table.rows
    ]
    # The ranges have a column of their own, so that the medians stand below each other.
    ranged = [any(row[place].range for row in rows) for place in range(len(words))]
    label = escape(table.title or heading(table.columns[0]))
    yield '<figure class="table">'
    if table.title:
        yield f"<figcaption><h3>{_inline(table.title)}</h3></figcaption>"
    yield f'<div class="wide" role="region" tabindex="0" aria-label="{label}">'
    yield "<table>"
    heads = "".join(
        f'<th scope="col"{kind}{" colspan=2" if two else ""}>'
        f"{_inline(column.name)}{_unit(column.unit)}</th>"
        for column, kind, two in zip(table.columns, classes, ranged, strict=True)
    )
    yield f"<thead><tr>{heads}</tr></thead>"
    yield "<tbody>"
    for number, row in enumerate(rows):
        cells = [f'<th scope="row">{_inline(row[0].value)}</th>']
        for (value, span), kind, two in zip(row[1:], classes[1:], ranged[1:], strict=True):
            cells.append(f"<td{kind}>{_inline(value)}</td>")
            if two:
                cells.append(f'<td class="range">{span}</td>')
        strong = ' class="strong"' if is_strong(table, number) else ""
        yield f"<tr{strong}>{''.join(cells)}</tr>"
    yield "</tbody>"
    yield "</table>"
    yield "</div>"
    if table.note:
        yield f'<p class="note">{_inline(table.note)}</p>'
    yield "</figure>"


def _kind(table: Table, place: int) -> str:
    """Words stand on the left, and those of long cells in several lines."""
    if not is_text(table, place):
        return ""
    long = any(len(str(row[place] or "")) > LONG for row in table.rows)
    return ' class="text long"' if long else ' class="text"'


def _unit(unit: str) -> str:
    return f' <span class="unit">{escape(unit)}</span>' if unit else ""


def _figure(figure: Figure, key: str) -> Iterator[str]:
    yield "<figure>"
    yield f"<figcaption><h3>{_inline(figure.title)}</h3>"
    if figure.subtitle:
        yield f"<p>{_inline(figure.subtitle)}</p>"
    yield "</figcaption>"
    yield f'<div class="broad">{inline(figure, key)}</div>'
    yield f'<div class="narrow">{inline(figure, f"{key}-narrow", narrow=True)}</div>'
    if figure.caption:
        yield f'<p class="note">{_inline(figure.caption)}</p>'
    yield "</figure>"
