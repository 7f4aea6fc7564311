"""Bar charts, horizontal; dots instead of bars if the axis is logarithmic."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from loadtests.reporting.cells import brief, heading
from loadtests.reporting.figures import chart
from loadtests.reporting.figures.chart import FAINT, INK, MARKS, NARROW, PAPER, Look, scale, shown
from loadtests.reporting.model import Bar, Bars
from loadtests.stats.results import Spread

BAR = 15.0
THIN = 11.0
"""One of several in a row."""
BETWEEN = 11.0
"""From one row to the next."""
OVER = 17.0
"""A name that stands above its row."""
LONGEST = 34
"""Letters in a line of a name that stands before its row."""
PALE = (1.0, 0.55, 0.28, 0.15)
"""How strong the colour of each part is."""


class Piece(NamedTuple):
    """A bar of a row or, of a stacked row, a part of it; `text` is the number at its end."""

    place: float
    base: float
    value: Spread
    colour: str
    text: str
    weight: str


def bars(figure: Bars, width: int) -> Figure:
    """The figure; heights are in pixels from its top."""
    if not any(value for bar in figure.bars for value in bar.values):
        return chart.nothing(width)
    narrow = width == NARROW
    names = [bar.name if narrow else textwrap.fill(bar.name, LONGEST) for bar in figure.bars]
    thick = THIN * len(figure.parts) if _grouped(figure) else BAR
    rows = [max(thick, 0 if narrow else (name.count("\n") + 1) * BAR) for name in names]
    over = OVER if narrow else 0.0
    tall = sum(rows) + len(rows) * (BETWEEN + over)
    legend = _legend(figure) if len(figure.parts) > 1 else ()
    made = chart.chart(width, tall + 46, legend, above=True)
    axes = made.subplots()
    room = width - (0 if narrow else max(map(len, names)) * chart.LETTER)
    scale(axes.xaxis, figure.axis, _ends(figure), int(room // 75))
    axes.set_ylim(tall, 0)
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
    axes.spines["bottom"].set_visible(False)
    axes.set_xlabel(heading(figure.axis))
    places, pieces, y = [], list[Piece](), BETWEEN / 2
    for bar, row in zip(figure.bars, rows, strict=True):
        places.append(y + over + row / 2)
        pieces += _row(axes, figure, bar, places[-1])
        y += over + row + BETWEEN
    _draw(axes, pieces, THIN - 2 if _grouped(figure) else BAR)
    axes.set_yticks([] if narrow else places, [] if narrow else names)
    for label, bar in zip(axes.get_yticklabels(), figure.bars, strict=False):
        label.set(size=12, color=INK, weight=_weight(bar))
    if narrow:
        for name, bar, place, row in zip(names, figure.bars, places, rows, strict=True):
            above = place - row / 2 - 5
            axes.text(0, above, name, transform=axes.get_yaxis_transform(), weight=_weight(bar))
    if not figure.axis.log and axes.get_xlim()[0] < 0:
        axes.axvline(0, color=FAINT, linewidth=0.8)
    return made


def _weight(bar: Bar) -> str:
    return "bold" if bar.strong else "normal"


def _grouped(figure: Bars) -> bool:
    return not figure.stacked and not figure.axis.log and len(figure.parts) > 1


def _legend(figure: Bars) -> list[Line2D]:
    """The parts, in grey: colours are those of the rows."""
    return [
        Line2D(
            [],
            [],
            linewidth=0,
            marker=MARKS[number % len(MARKS)] if figure.axis.log else "s",
            markersize=6 if figure.axis.log else 10,
            color=FAINT if figure.axis.log else _pale(FAINT, number),
            markerfacecolor=PAPER if figure.axis.log and number % 2 == 0 else None,
            label=name,
        )
        for number, name in enumerate(figure.parts)
    ]


def _pale(colour: str, number: int) -> str:
    share = PALE[min(number, len(PALE) - 1)]
    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return to_hex((red, green, blue))


def _ends(figure: Bars) -> Iterator[float]:
    if not figure.axis.log:
        yield 0.0
    for bar in figure.bars:
        base = 0.0
        for value in filter(None, bar.values):
            yield from (base + end for end in value[:3])
            base += value.median if figure.stacked else 0.0


def _row(axes: Axes, figure: Bars, bar: Bar, y: float) -> Iterator[Piece]:
    """Draws the dots of a row; yields the pieces of its bars, which are drawn with all others."""
    values = [(n, v) for n, v in enumerate(bar.values) if v and shown(figure.axis, v.median)]
    if not values:
        low = axes.get_xlim()[0] if figure.axis.log else 0.0
        chart.note(axes, "not measured", (low, y), (6, 0), va="center")
    elif figure.axis.log:
        _dots(axes, bar, values, y)
    else:
        base = 0.0
        for number, value in values:
            place = y + THIN * (number - (len(bar.values) - 1) / 2) if _grouped(figure) else y
            last = not figure.stacked or number == values[-1][0]
            text = brief(base + value.median if figure.stacked else value.median) if last else ""
            yield Piece(place, base, value, _pale(bar.colour, number), text, _weight(bar))
            if figure.stacked:
                base += value.median


def _draw(axes: Axes, pieces: Sequence[Piece], thick: float) -> None:
    """All bars, all whiskers and their numbers: each call of matplotlib takes a millisecond."""
    if not pieces:
        return
    places, bases, values, colours, _, _ = zip(*pieces, strict=True)
    medians = [value.median for value in values]
    axes.barh(places, medians, thick, bases, color=colours, zorder=2)
    spread = [piece for piece in pieces if piece.value.low != piece.value.high]
    if spread:
        ys = [piece.place for piece in spread]
        xs = [piece.base + piece.value.median for piece in spread]
        ends = _whiskers([piece.value for piece in spread])
        # A rim shows the whisker on a bar that is as dark as itself.
        for colour, width, order in ((PAPER, 2.6, 3.0), (INK, 1.1, 3.1)):
            look: Look = {"ecolor": colour, "elinewidth": width, "capthick": width, "zorder": order}
            axes.errorbar(xs, ys, xerr=ends, fmt="none", **look)
    for piece in pieces:
        if not piece.text:
            continue
        negative = piece.value.median < 0
        end = piece.base + (piece.value.low if negative else piece.value.high)
        small: Look = {
            "ha": "right" if negative else "left",
            "va": "center",
            "weight": piece.weight,
        }
        at, offset = (end, piece.place), (-6 if negative else 6, 0)
        chart.note(axes, piece.text, at, offset, color=INK, **small)


def _whiskers(values: Sequence[Spread]) -> list[list[float]]:
    """How far each goes below and above its median."""
    return [[one.median - one.low for one in values], [one.high - one.median for one in values]]


def _dots(axes: Axes, bar: Bar, values: list[tuple[int, Spread]], y: float) -> None:
    medians = [value.median for _, value in values]
    axes.plot([min(medians), max(medians)], [y, y], color=bar.colour, linewidth=5, alpha=0.18)
    for number, value in values:
        face = PAPER if number % 2 == 0 and len(bar.values) > 1 else bar.colour
        look: Look = {
            "color": bar.colour,
            "markersize": 6.5,
            "markerfacecolor": face,
            "clip_on": False,
        }
        ends = _whiskers([value]) if 0 <= value.low < value.high else None
        mark = MARKS[number % len(MARKS)]
        axes.errorbar(value.median, y, xerr=ends, fmt=mark, zorder=4, **look)
