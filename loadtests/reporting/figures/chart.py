"""An empty figure of a width, with a legend; scales, limits and ticks of its axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any, TypeAlias

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis as Drawn
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from loadtests.reporting.cells import brief
from loadtests.reporting.model import Axis

INK, FAINT, PAPER = "#1d2430", "#5c6675", "#ffffff"
MARKS = "os^Dv"
WIDE, NARROW = 860, 360
"""Pixels: the widths of a page, and of a phone."""
SMALL = 11
LETTER = 7.3
"""Pixels of a letter, more or less."""
DIGITS = (1, 2, 5)
Look: TypeAlias = dict[str, Any]
"""Arguments of matplotlib."""
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


class Canvas(FigureCanvasSVG):
    """Draws a figure as SVG, once, and lays it out with the renderer that draws it.

    `savefig` draws it twice, and measures each text three times.
    """

    def __init__(self, figure: Figure) -> None:
        super().__init__(figure)
        self._svg = StringIO()
        size = (72 * inches for inches in figure.get_size_inches())
        self._renderer = RendererSVG(*size, self._svg, metadata=NO_METADATA)  # type: ignore

    def get_renderer(self) -> RendererSVG:
        """What matplotlib measures texts with."""
        return self._renderer

    def svg(self) -> str:
        """The document; of each canvas once."""
        self.figure.draw(self._renderer)
        self._renderer.finalize()  # type: ignore
        return self._svg.getvalue()


def chart(
    width: int, height: float, handles: Sequence[Artist] = (), *, above: bool = False
) -> Figure:
    """A figure with a legend below or above, which makes it so much taller. Bold names are ours."""
    one = max((len(str(handle.get_label())) for handle in handles), default=0) * LETTER + 45
    columns = max(1, min(len(handles), int(width // one)))
    tall = height + math.ceil(len(handles) / columns) * 18 + (14 if handles else 0)
    made = Figure(figsize=(width / 72, tall / 72))
    Canvas(made)
    if handles:
        legend = made.legend(
            handles=handles,
            loc="outside upper left" if above else "outside lower left",
            ncols=columns,
        )
        for text, handle in zip(legend.get_texts(), handles, strict=True):
            text.set_fontweight(handle.get_gid() or "normal")
            handle.set_gid(None)
    return made


def nothing(width: int) -> Figure:
    """Says that there is nothing to be seen."""
    made = chart(width, 64)
    made.text(0.5, 0.5, "nothing was measured", color=FAINT, ha="center", va="center")
    return made


def note(
    axes: Axes, text: str, at: tuple[float, float], pixels: tuple[float, float], **look: Any
) -> None:
    """Small words beside a point."""
    small: Look = {"textcoords": "offset points", "fontsize": SMALL, "color": FAINT}
    axes.annotate(text, at, pixels, **(small | look))


def scale(
    drawn: Drawn, axis: Axis, values: Iterable[float], room: int, *, from_zero: bool = True
) -> None:
    """Makes an axis ready for these values, with about `room` ticks, which are plain numbers.

    A logarithmic one begins and ends at the 1, 2 or 5 of a decade, and has a place for zero if it
    needs one. `from_zero` makes a linear one begin at zero if no value is below, and end at a tick.
    """
    known = [value for value in values if math.isfinite(value)]
    if axis.log:
        low, high, ticks = _logarithmic(axis, known, room)
        kind = {"linthresh": ticks[1], "linscale": 0.5} if low == 0 else {}
        drawn._set_axes_scale("symlog" if kind else "log", **kind)  # type: ignore[attr-defined]
    else:
        low, high, ticks = _linear(axis, known, room, from_zero=from_zero)
    if axis.nines:
        ticks = [tick for tick in ticks if math.log10(tick) % 1 < 1e-9]
    drawn.set_ticks(ticks, [_percentile(tick) if axis.nines else brief(tick) for tick in ticks])
    drawn.set_ticks([], minor=True)
    drawn.set_view_interval(low, high, ignore=True)
    drawn.axes.autoscale(enable=False)


def _percentile(of: float) -> str:
    """Percent of which one of so many is not one: 99.9 % of 1,000."""
    return f"{100 - 100 / of:.{max(round(math.log10(of)) - 2, 0)}f} %"


def shown(axis: Axis, value: float) -> bool:
    """Whether there is a place for a value."""
    return math.isfinite(value) and not (axis.log and value < 0)


def _linear(
    axis: Axis, known: list[float], room: int, *, from_zero: bool
) -> tuple[float, float, list[float]]:
    low, high = min(known, default=0.0), max(known, default=1.0)
    if low >= 0 and (from_zero or low <= high / 4):
        low = 0.0
    if high <= 0 and from_zero:
        high = 0.0
    low = low if axis.low is None else axis.low
    high = high if axis.high is None else axis.high
    if low >= high:
        low, high = (low, low + 1) if low >= 0 else (low - 1, low)
    whole = not from_zero and all(value == round(value) for value in (low, high, *known))
    ticks = MaxNLocator(room, steps=[*DIGITS, 10], integer=whole).tick_values(low, high)
    if from_zero:
        low = low if axis.low is not None else float(ticks[0])
        high = high if axis.high is not None else float(ticks[-1])
    slack = (high - low) * 1e-9
    return low, high, [float(tick) for tick in ticks if low - slack <= tick <= high + slack]


def _logarithmic(axis: Axis, known: list[float], room: int) -> tuple[float, float, list[float]]:
    positive = [value for value in known if value > 0]
    low = axis.low or min(positive, default=1.0)
    high = max(axis.high or max(positive, default=10.0), low)
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    # As text, so that 0.001 is the number that is written so.
    rounds = [float(f"{digit}e{power}") for power in powers for digit in DIGITS]
    first = max(tick for tick in rounds if tick <= low * (0.999 if low >= high else 1.001))
    last = min(tick for tick in rounds if tick >= high * 0.999 and tick > first)
    ticks = [tick for tick in rounds if first <= tick <= last]
    if len(ticks) > room:
        decades = [tick for tick in ticks if math.log10(tick) % 1 < 1e-9]
        ticks = decades[:: math.ceil(len(decades) / room)] if len(decades) > 1 else [first, last]
    return (0.0, last, [0.0, *ticks]) if 0 in known else (first, last, ticks)
