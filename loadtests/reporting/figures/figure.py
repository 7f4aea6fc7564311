"""SVG figures in two widths: of a page, and of a phone."""

from __future__ import annotations

from loadtests.reporting.cells import axis_label
from loadtests.reporting.figures.bars import bars
from loadtests.reporting.figures.canvas import (
    FAINT,
    INK,
    LEADING,
    NARROW,
    TEXT,
    TITLE,
    WIDE,
    Canvas,
    Shape,
    drawing,
    wrapped,
)
from loadtests.reporting.figures.lines import lines, panels
from loadtests.reporting.figures.svg import tidy
from loadtests.reporting.model import Bars, Figure, Lines

MARGIN = 20.0
"""Around a figure that has a file of its own."""


def inline(figure: Figure, key: str, *, narrow: bool = False) -> str:
    """For a page, which says title and caption. `key` is unique in the page."""
    return _drawn(figure, key, NARROW if narrow else WIDE, titled=False)


def document(figure: Figure) -> str:
    """For a file, with its title; the caption belongs beside it."""
    return _drawn(figure, figure.name, WIDE, titled=True) + "\n"


def _drawn(figure: Figure, key: str, shape: Shape, *, titled: bool) -> str:
    with drawing(key):
        if isinstance(figure, Lines):
            height, draw = lines(figure, shape)
        elif isinstance(figure, Bars):
            height, draw = bars(figure, shape)
        else:
            height, draw = panels(figure, shape)
        heads = _heads(figure, shape) if titled else []
        top = sum(size * LEADING for _, size in heads) + (8 if heads else 0)
        canvas = Canvas(shape.width, top + height)
        y = 0.0
        for text, size in heads:
            y += size * LEADING
            canvas.text(
                0,
                y - size * 0.35,
                text,
                size=size,
                bold=size == TITLE,
                colour=FAINT if size == TEXT else INK,
            )
        draw(canvas, top)
        margin = MARGIN if titled else 0.0
        return tidy(canvas.svg(), key, figure.title, description(figure), margin)


def _heads(figure: Figure, shape: Shape) -> list[tuple[str, float]]:
    title = wrapped(figure.title, shape.width, TITLE, bold=True)
    subtitle = wrapped(figure.subtitle, shape.width) if figure.subtitle else []
    return [*((text, TITLE) for text in title), *((text, TEXT) for text in subtitle)]


def description(figure: Figure) -> str:
    """What is to be seen, for those who cannot."""
    if isinstance(figure, Lines):
        names = ", ".join(line.name for line in figure.lines) or "nothing"
        return f"{axis_label(figure.y)} over {axis_label(figure.x)}, for {names}."
    if isinstance(figure, Bars):
        names = ", ".join(bar.name for bar in figure.bars) or "nothing"
        parts = f" ({', '.join(figure.parts)})" if figure.parts else ""
        return f"{axis_label(figure.axis)}{parts}, for {names}."
    return " ".join(f"{panel.title}: {description(panel)}" for panel in figure.panels)
