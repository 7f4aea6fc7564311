"""Markdown beyond Sphinx's: notes, pictures for light and dark, and cells with sentences.

A quotation that begins with `**Note:**` (or Tip, Warning) becomes an admonition. A `<picture>` with
a source for dark colours becomes two images, of which the theme shows one.
"""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.transforms import SphinxTransform

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: Characters of a cell that is more than a name or a number.
SENTENCE = 30

ADMONITIONS: dict[str, type[nodes.Element]] = {
    "note": nodes.note,
    "tip": nodes.tip,
    "important": nodes.important,
    "warning": nodes.warning,
}


class Notes(SphinxTransform):
    """Replace quotations that begin with a label by admonitions."""

    default_priority = 210

    def apply(self, **_: Any) -> None:
        """Replace the quotations of one page."""
        for quotation in list(self.document.findall(nodes.block_quote)):
            first = quotation[0] if len(quotation) else None
            if not isinstance(first, nodes.paragraph):
                continue
            # The parser puts an empty text before what is strong.
            label, *rest = [node for node in first.children if node.astext()] or [nodes.Text("")]
            kind = ADMONITIONS.get(label.astext().rstrip(":.").lower())
            if kind is None or not isinstance(label, nodes.strong):
                continue
            if rest and isinstance(rest[0], nodes.Text):
                rest[0] = nodes.Text(rest[0].lstrip(" :\n"))
            first.children = []
            first.extend(rest)
            quotation.replace_self(kind("", *quotation.children))


class Pictures(SphinxTransform):
    """Replace `<picture>` by images, which Sphinx looks for and copies."""

    # Before images are collected.
    default_priority = 210

    def apply(self, **_: Any) -> None:
        """Replace the pictures of one page."""
        for raw in list(self.document.findall(nodes.raw)):
            if not raw.astext().lstrip().startswith("<picture"):
                continue
            parser = Picture()
            parser.feed(raw.astext())
            options = {"alt": parser.alt}
            if parser.width:
                options["width"] = parser.width
            light = ["only-light"] if parser.dark else []
            images = [nodes.image(uri=parser.light, classes=light, **options)]
            if parser.dark:
                images.append(nodes.image(uri=parser.dark, classes=["only-dark"], **options))
            inline = isinstance(raw.parent, nodes.TextElement)
            raw.replace_self(images if inline else [nodes.paragraph("", "", *images)])


class Columns(SphinxTransform):
    """Mark cells with sentences: on a phone their columns keep a width in which they are read."""

    default_priority = 210

    def apply(self, **_: Any) -> None:
        """Mark the cells of one page."""
        for cell in self.document.findall(nodes.entry):
            if len(cell.astext()) > SENTENCE:
                cell["classes"].append("prose")


class Picture(HTMLParser):
    """Reader of one `<picture>`."""

    def __init__(self) -> None:
        super().__init__()
        self.light = self.dark = self.alt = self.width = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the addresses of both pictures, and what describes them."""
        given = {name: value or "" for name, value in attrs}
        if tag == "source" and "dark" in given.get("media", ""):
            self.dark = given.get("srcset", "")
        elif tag == "img":
            self.light = given.get("src", "")
            self.alt = given.get("alt", "")
            self.width = given.get("width", "")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the transforms."""
    app.add_transform(Notes)
    app.add_transform(Pictures)
    app.add_transform(Columns)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
