"""Bar charts, horizontal; dots instead of bars if the axis is logarithmic."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from loadtests.reporting.cells import axis_label, brief
from loadtests.reporting.figures import legend
from loadtests.reporting.figures.canvas import (
    FAINT,
    INK,
    MARKS,
    PAPER,
    SMALL,
    TEXT,
    Canvas,
    Shape,
    width_of,
    wrapped,
)
from loadtests.reporting.figures.legend import Entry
from loadtests.reporting.figures.lines import AXIS, EDGE, Draw, nothing
from loadtests.reporting.figures.ticks import Scale, scale
from loadtests.reporting.model import Bar, Bars
from loadtests.stats.results import Spread

BAR = 15.0
THIN = 11.0
"""One of several in a row."""
BETWEEN = 11.0
"""From one row to the next."""
OVER = 17.0
"""A name that stands above its row."""
LEADING = 15.0
PALE = (1.0, 0.55, 0.28, 0.15)
"""How strong the colour of each part is."""
WHISKER = 3.5


def bars(figure: Bars, shape: Shape) -> tuple[float, Draw]:
    """The height of a figure, and what draws it."""
    if not any(value for bar in figure.bars for value in bar.values):
        return nothing(shape)
    room = 0.0 if shape.narrow else min(_widest(figure), shape.width * 0.3)
    names = [
        wrapped(bar.name, room or shape.width, bold=bar.strong) if room else [bar.name]
        for bar in figure.bars
    ]
    left = room + 10 if room else 8.0
    rows = [max(_thickness(figure), len(name) * LEADING if room else 0) for name in names]
    over = 0.0 if room else OVER
    parts = _parts(figure)
    above = legend.height(parts, shape.width) + 8 if parts else 4.0
    tall = sum(rows) + len(rows) * (BETWEEN + over)

    def draw(canvas: Canvas, top: float) -> None:
        legend.draw(canvas, parts, left, top, shape.width - left)
        upper = top + above
        values = max(width_of(text, SMALL) for text in _values(figure)) + 8
        # The values of bars that go to the left stand on their left.
        begin = left + (values if min(_ends(figure)) < 0 and not figure.axis.log else 0)
        width = shape.width - begin - (EDGE if figure.axis.log else values)
        x = scale(figure.axis, list(_ends(figure)), width, lambda text: width_of(text, SMALL))
        axes = canvas.axes(begin, upper, width, tall, x, None)
        axes.set_ylim(tall, 0)
        y = BETWEEN / 2
        for bar, name, row in zip(figure.bars, names, rows, strict=True):
            _name(canvas, bar, name, left, upper + y, row, above=bool(over))
            _row(axes, figure, bar, y + over + row / 2, x)
            y += over + row + BETWEEN
        if not x.log and x.low < 0:
            axes.axvline(0, color=FAINT, linewidth=0.8)
        text = axis_label(figure.axis)
        middle = begin + width / 2
        canvas.text(middle, upper + tall + 34, text, size=SMALL, colour=FAINT, align="center")

    return above + tall + AXIS, draw


def _widest(figure: Bars) -> float:
    return max(width_of(bar.name, bold=bar.strong) for bar in figure.bars)


def _grouped(figure: Bars) -> bool:
    return not figure.stacked and not figure.axis.log and len(figure.parts) > 1


def _thickness(figure: Bars) -> float:
    return THIN * len(figure.parts) if _grouped(figure) else BAR


def _parts(figure: Bars) -> list[Entry]:
    """The legend of the parts, in grey: colours are those of the rows."""
    if len(figure.parts) < 2:
        return []
    if figure.axis.log:
        return [
            Entry(name, FAINT, mark=_mark(number), hollow=number % 2 == 0)
            for number, name in enumerate(figure.parts)
        ]
    return [
        Entry(name, _pale(FAINT, number), mark="s", size=10)
        for number, name in enumerate(figure.parts)
    ]


def _mark(number: int) -> str:
    return MARKS[number % len(MARKS)]


def _pale(colour: str, number: int) -> str:
    share = PALE[min(number, len(PALE) - 1)]
    red, green, blue = (round((1 - share * (1 - part)) * 255) for part in to_rgb(colour))
    return f"#{red:02x}{green:02x}{blue:02x}"


def _ends(figure: Bars) -> Sequence[float]:
    ends: list[float] = [] if figure.axis.log else [0.0]
    for bar in figure.bars:
        base = 0.0
        for value in bar.values:
            if value:
                ends += [base + value.low, base + value.high, base + value.median]
                base += value.median if figure.stacked else 0.0
    return ends


def _values(figure: Bars) -> list[str]:
    texts = ["not measured"]
    for bar in figure.bars:
        texts += [brief(value.median) for value in bar.values if value]
        texts.append(brief(sum(value.median for value in bar.values if value)))
    return texts


def _name(
    canvas: Canvas, bar: Bar, name: list[str], left: float, y: float, row: float, *, above: bool
) -> None:
    if above:
        canvas.text(left, y + TEXT, name[0], bold=bar.strong)
        return
    first = y + row / 2 + TEXT * 0.36 - (len(name) - 1) * LEADING / 2
    for number, text in enumerate(name):
        place = first + number * LEADING
        canvas.text(left - 10, place, text, align="right", bold=bar.strong)


def _row(axes: Axes, figure: Bars, bar: Bar, y: float, x: Scale) -> None:
    shown = [
        (number, value)
        for number, value in enumerate(bar.values)
        if value and x.shows(value.median)
    ]
    if not shown:
        _write(axes, x.low if x.log else max(0.0, x.low), y, "not measured", colour=FAINT)
    elif figure.axis.log:
        _marks(axes, bar, shown, y, x)
    elif figure.stacked:
        base = 0.0
        for number, value in shown:
            moved = Spread(base + value.median, base + value.low, base + value.high, value.rounds)
            _bar(axes, _pale(bar.colour, number), base, moved, y, BAR)
            base = moved.median
        end = max(base, moved.high)
        _write(axes, end, y, brief(base), bold=bar.strong)
    else:
        thick = THIN if _grouped(figure) else BAR
        first = y - thick * (len(bar.values) - 1) / 2
        for number, value in shown:
            place = first + number * thick
            colour = _pale(bar.colour, number)
            _bar(axes, colour, 0.0, value, place, thick - (2 if thick == THIN else 0))
            low, high = min(value.low, 0.0), max(value.high, 0.0)
            ahead = value.median < 0
            _write(
                axes,
                low if ahead else high,
                place,
                brief(value.median),
                bold=bar.strong,
                ahead=ahead,
            )


def _bar(axes: Axes, colour: str, base: float, value: Spread, y: float, thick: float) -> None:
    axes.barh(y, value.median - base, thick, base, color=colour, linewidth=0, zorder=2)
    _whisker(axes, value, y, INK)


def _whisker(axes: Axes, value: Spread, y: float, colour: str) -> None:
    """From the lowest to the highest, with a rim that shows it on a bar as dark as itself."""
    if value.low < value.high:
        low, high = ends = (value.low, value.high)
        for paint, width, order in ((PAPER, 2.6, 3.0), (colour, 1.1, 3.1)):
            axes.hlines(y, low, high, color=paint, linewidth=width, zorder=order)
            axes.vlines(ends, y - WHISKER, y + WHISKER, color=paint, linewidth=width, zorder=order)


def _marks(axes: Axes, bar: Bar, shown: Sequence[tuple[int, Spread]], y: float, x: Scale) -> None:
    medians = [value.median for _, value in shown]
    ends = [min(medians), max(medians)]
    axes.plot(ends, [y, y], color=bar.colour, linewidth=5, alpha=0.18, zorder=1)
    for number, value in shown:
        if x.shows(value.low):
            _whisker(axes, value, y, bar.colour)
        axes.plot(
            value.median,
            y,
            color=bar.colour,
            marker=_mark(number),
            markersize=6.5,
            markeredgewidth=1.6,
            markerfacecolor=PAPER if number % 2 == 0 and len(bar.values) > 1 else bar.colour,
            clip_on=False,
            zorder=4,
        )


def _write(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    *,
    colour: str = INK,
    bold: bool = False,
    ahead: bool = False,
) -> None:
    """A text behind a value, or ahead of it."""
    axes.annotate(
        text,
        (x, y),
        (-6 if ahead else 6, -SMALL * 0.36),
        textcoords="offset points",
        fontsize=SMALL,
        color=colour,
        ha="right" if ahead else "left",
        va="baseline",
        weight="bold" if bold else "normal",
        annotation_clip=False,
    )
