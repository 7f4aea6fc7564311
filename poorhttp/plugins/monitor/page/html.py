"""HTML made of constant templates and escaped values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from poorhttp import _core
from poorhttp.errors import visible

#: Letters of a text in a table, at most; the whole text is in the title of its element.
MOST_LETTERS = 160


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return it unescaped, for `_core.fill`."""
        return str(self)


def html(template: str, *values: object) -> Html:
    """Return a constant template with a value in place of each `{}`; all but `Html` are escaped."""
    texts = template.split("{}")
    assert len(texts) == len(values) + 1, template
    parts: list[object] = [texts[0]]
    for value, text in zip(values, texts[1:], strict=True):
        parts += (value if type(value) is Html else visible(str(value)), text)
    return Html(_core.fill(*parts))


def join(parts: Iterable[Html], between: str = "") -> Html:
    """Join pieces."""
    return Html(between.join(parts))


def code(text: str) -> Html:
    """Return an element with a text of a client or of the configuration, cut if it is long."""
    text = visible(text)
    if len(text) <= MOST_LETTERS:
        return html("<code>{}</code>", text)
    return html('<code title="{}">{}…</code>', text, text[:MOST_LETTERS])


def table(caption: str, columns: Sequence[tuple[str, str]], rows: Iterable[Html]) -> Html:
    """Return a table that scrolls by itself where it is wider than the page.

    Args:
        caption: names it.
        columns: heading and class of each column; class `n` is for numbers.
        rows: `tr` elements.
    """
    heads = join(html('<th scope="col" class="{}">{}</th>', kind, name) for name, kind in columns)
    return html(
        '<div class="wide" role="region" tabindex="0" aria-label="{}"><table>'
        "<caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>",
        *(caption, caption, heads, join(rows)),
    )


def row(*cells: tuple[object, str], kind: str = "") -> Html:
    """Return a `tr` element of cells with their classes; the first cell is its heading."""
    (first, first_kind), *rest = cells
    return html(
        '<tr class="{}"><th scope="row" class="{}">{}</th>{}</tr>',
        *(kind, first_kind, first),
        join(html('<td class="{}">{}</td>', each, value) for value, each in rest),
    )
