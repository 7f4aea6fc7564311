"""SVG figures in two widths: of a page, and of a phone."""

from __future__ import annotations

import re
import textwrap
from html import escape
from pathlib import Path

from matplotlib import style

from loadtests.reporting.cells import heading
from loadtests.reporting.figures.bars import bars
from loadtests.reporting.figures.chart import FAINT, INK, LETTER, NARROW, PAPER, WIDE, Canvas
from loadtests.reporting.figures.lines import lines
from loadtests.reporting.model import Bars, Figure, Lines

STYLE = Path(__file__).with_name("lab.mplstyle")
FONTS = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
MARGIN = 20
"""Around a figure that has a file of its own."""


def inline(figure: Figure, key: str, *, narrow: bool = False) -> str:
    """For a page, which says title and caption. `key` is unique in the page."""
    width = NARROW if narrow else WIDE
    body, height = _drawn(figure, key, width)
    return _element(figure, key, (0, 0, width, height), body)


def document(figure: Figure) -> str:
    """For a file, on paper and with its title; the caption belongs beside it."""
    body, height = _drawn(figure, figure.name, WIDE)
    y, heads = 0.0, ""
    texts = (figure.title, 16, INK, 600), (figure.subtitle, 12, FAINT, 400)
    for text, size, colour, weight in texts:
        for line in textwrap.wrap(text, int(WIDE / LETTER * 12 / size)):
            y += size * 1.35
            look = f"font-size: {size}px; font-weight: {weight}; fill: {colour}"
            heads += f'<text x="0" y="{y - 5:g}" style="{look}">{escape(line)}</text>'
    wide, tall = WIDE + 2 * MARGIN, height + y + 8 + 2 * MARGIN
    place = f'x="{-MARGIN}" y="{-MARGIN}" width="{wide:g}" height="{tall:g}"'
    drawn = f'<rect {place} fill="{PAPER}"/>{heads}<g transform="translate(0 {y + 8:g})">{body}</g>'
    return _element(figure, figure.name, (-MARGIN, -MARGIN, wide, tall), drawn) + "\n"


def _element(figure: Figure, key: str, box: tuple[float, ...], body: str) -> str:
    view = " ".join(f"{value:g}" for value in box)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{box[2]:g}" height="{box[3]:g}" viewBox="{view}" font-family="{FONTS}" '
        f'role="img" aria-labelledby="{key}-title {key}-description">'
        f'<title id="{key}-title">{escape(figure.title)}</title>'
        f'<desc id="{key}-description">{escape(description(figure))}</desc>{body}</svg>'
    )


def _drawn(figure: Figure, key: str, width: int) -> tuple[str, float]:
    """What is in the SVG element, and its height. The same everywhere, whatever is set."""
    with style.context([STYLE, {"svg.hashsalt": key}], after_reset=True):
        made = bars(figure, width) if isinstance(figure, Bars) else lines(figure, width)
        assert isinstance(made.canvas, Canvas)
        written = made.canvas.svg()
    body = written.partition("<svg")[2].partition(">")[2].rpartition("</svg>")[0]
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r"<[^>]*>", lambda tag: _tidied(tag[0], key), body)
    body = re.sub(r">\s+<", "><", body.strip()).replace("<g/>", "")
    return body, float(made.get_figheight()) * 72


def _tidied(tag: str, key: str) -> str:
    """A tag: smaller, its names unique in the page, and without a font of its own."""
    tag = " ".join(tag.split())
    tag = re.sub(r'<g id="[^"]*"', "<g", tag)
    tag = re.sub(r'(\bid="|"#|url\(#)', rf"\g<1>{key}-", tag)
    tag = re.sub(r' transform="rotate\(-0 [^"]*"', "", tag)
    tag = re.sub(r"font-family: [^;\"]*; ?", "", tag)
    # Matplotlib before 3.11 writes size, weight and family together.
    tag = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", tag)
    tag = re.sub(r"font: \w+ ([\d.]+px) [^;\"]*", r"font-size: \1; font-weight: 600", tag)
    return re.sub(r"-?\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", tag)


def description(figure: Figure) -> str:
    """What is to be seen, for those who cannot."""
    if isinstance(figure, Lines):
        names = ", ".join(line.name for line in figure.lines) or "nothing"
        return f"{heading(figure.y)} over {heading(figure.x)}, for {names}."
    if isinstance(figure, Bars):
        names = ", ".join(bar.name for bar in figure.bars) or "nothing"
        parts = f" ({', '.join(figure.parts)})" if figure.parts else ""
        return f"{heading(figure.axis)}{parts}, for {names}."
    return " ".join(f"{panel.title}: {description(panel)}" for panel in figure.panels)
