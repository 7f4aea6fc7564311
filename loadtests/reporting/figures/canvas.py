"""A drawing area, measured in pixels from its upper left corner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path

from loadtests.reporting.figures.ticks import LINEAR_PART, Scale

INK = "#1d2430"
FAINT = "#5c6675"
GRID = "#e3e7ed"
PAPER = "#ffffff"
FONT = "DejaVu Sans"
"""What matplotlib measures with. It is wider than most, so that another one fits, too."""
MARKS = "os^Dv"
SMALL, TEXT, TITLE = 11.0, 12.0, 16.0
LEADING = 1.35
"""From line to line, in heights of the font."""


@dataclass(frozen=True)
class Shape:
    """How wide a figure is, and whether that is as wide as a phone."""

    width: float
    narrow: bool


WIDE, NARROW = Shape(860, False), Shape(360, True)


def width_of(text: str, size: float = TEXT, *, bold: bool = False) -> float:
    """Pixels from the beginning of a text to its end."""
    font = FontProperties(family=FONT, size=size, weight="bold" if bold else "normal")
    return float(text_to_path.get_text_width_height_descent(text, font, False)[0])


def wrapped(text: str, width: float, size: float = TEXT, *, bold: bool = False) -> list[str]:
    """The lines of a text; a word that is too long stands alone."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and width_of(longer, size, bold=bold) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


class Canvas:
    """A figure of matplotlib, in pixels."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        # A pixel is a point, so that sizes of fonts are pixels, too.
        self.figure = Figure(figsize=(width / 72, height / 72), dpi=72, facecolor="none")
        FigureCanvasSVG(self.figure)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = TEXT,
        colour: str = INK,
        align: str = "left",
        bold: bool = False,
    ) -> None:
        """A line of text, whose base is at `y`."""
        self.figure.text(
            x / self.width,
            1 - y / self.height,
            text,
            fontsize=size,
            color=colour,
            ha=align,
            va="baseline",
            weight="bold" if bold else "normal",
        )

    def line(
        self,
        points: Sequence[tuple[float, float]],
        colour: str,
        width: float = 1.0,
        mark: str = "",
        *,
        size: float = 5.5,
        hollow: bool = False,
    ) -> None:
        """A line through some points, or a mark at each of them if it has no width."""
        self.figure.add_artist(
            Line2D(
                [x / self.width for x, _ in points],
                [1 - y / self.height for _, y in points],
                color=colour,
                linewidth=width,
                linestyle="-" if width else "none",
                marker=mark or None,
                markersize=size,
                markerfacecolor=PAPER if hollow else colour,
                markeredgewidth=1.2,
                transform=self.figure.transFigure,
            )
        )

    def axes(
        self, left: float, top: float, width: float, height: float, x: Scale, y: Scale | None
    ) -> Axes:
        """Axes in this place, with a grid at the ticks of `y`, or of `x` if that is rows (None)."""
        made = self.figure.add_axes(
            (
                left / self.width,
                1 - (top + height) / self.height,
                width / self.width,
                height / self.height,
            )
        )
        made.set_facecolor("none")
        for name, spine in made.spines.items():
            spine.set_visible(name == ("bottom" if y else "none"))
            spine.set(color=FAINT, linewidth=0.8)
        made.set_axisbelow(True)
        _apply(made, "x", x)
        if y is None:
            made.set_yticks([])
        else:
            _apply(made, "y", y)
        made.grid(axis="y" if y else "x", color=GRID, linewidth=0.7)
        made.tick_params(
            length=0, labelsize=SMALL, labelcolor=FAINT, pad=5, which="both", grid_zorder=0
        )
        return made

    def svg(self) -> str:
        """As matplotlib writes it."""
        written = StringIO()
        self.figure.savefig(written, format="svg", metadata={"Date": None})
        return written.getvalue()


@contextmanager
def drawing(salt: str) -> Iterator[None]:
    """While a figure is drawn: the same everywhere, whatever is set. `salt` is for names."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(
            {
                "axes.unicode_minus": False,
                "font.family": FONT,
                "svg.fonttype": "none",
                "svg.hashsalt": salt,
                "text.parse_math": False,
            }
        )
        yield


def _apply(axes: Axes, which: str, scale: Scale) -> None:
    setter = {"x": axes.set_xscale, "y": axes.set_yscale}[which]
    if scale.threshold:
        setter("symlog", base=10, linthresh=scale.threshold, linscale=LINEAR_PART)
    elif scale.log:
        setter("log")
    if which == "x":
        axes.set_xlim(scale.low, scale.high)
        axes.set_xticks(scale.ticks, scale.labels())
        axes.set_xticks([], minor=True)
    else:
        axes.set_ylim(scale.low, scale.high)
        axes.set_yticks(scale.ticks, scale.labels())
        axes.set_yticks([], minor=True)
