"""Line charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from matplotlib.axes import Axes

from loadtests.reporting.cells import axis_label
from loadtests.reporting.figures import legend
from loadtests.reporting.figures.canvas import (
    FAINT,
    MARKS,
    PAPER,
    SMALL,
    TEXT,
    Canvas,
    Shape,
    width_of,
)
from loadtests.reporting.figures.legend import Entry
from loadtests.reporting.figures.ticks import Scale, scale
from loadtests.reporting.model import Line, Lines, Panels

EDGE = 18.0
"""Right of the axes, for half of the last label."""
AXIS = 42.0
"""Below the axes: numbers and label."""
ABOVE = 24.0
"""Above the axes: the label of the vertical one."""
NAME = 22.0
"""Above that: the name of a panel."""
NAMES = 15.0
"""From one name at the end of a line to the next."""
LEADER = 40.0
"""From the axes to the names: each name is led to its line."""
FEW = 6
"""So many bands can be told apart."""

Draw: TypeAlias = Callable[[Canvas, float], None]
"""Draws from a height on."""


def lines(figure: Lines, shape: Shape) -> tuple[float, Draw]:
    """The height of a figure, and what draws it."""
    if not any(_points(line) for line in figure.lines):
        return nothing(shape)
    entries = [_entry(figure, number) for number in range(len(figure.lines))]
    if shape.narrow or len(entries) < 2:
        below = entries if len(entries) > 1 else []
        plot = 230.0 if shape.narrow else 300.0
        tall = plot + ABOVE + AXIS
        needed = legend.height(below, shape.width)

        def draw(canvas: Canvas, top: float) -> None:
            _axes(canvas, figure, 0, top + ABOVE, shape.width - EDGE, plot)
            legend.draw(canvas, below, 0, top + tall + 4, shape.width)

        return tall + (needed + 4 if needed else 0), draw

    plot = max(300.0, NAMES * len(entries) + 40)
    names = max(width_of(entry.name, bold=entry.strong) for entry in entries)

    def draw_named(canvas: Canvas, top: float) -> None:
        width = shape.width - LEADER - names
        right, ends = _axes(canvas, figure, 0, top + ABOVE, width, plot)
        _names(canvas, entries, right, ends, top + ABOVE, plot)

    return plot + ABOVE + AXIS, draw_named


def panels(figure: Panels, shape: Shape) -> tuple[float, Draw]:
    """The same of several figures with one legend."""
    shown = [panel for panel in figure.panels if any(_points(line) for line in panel.lines)]
    if not shown:
        return nothing(shape)
    across = 1 if shape.narrow else min(len(shown), 3 if len(shown) != 4 else 2)
    gap = 28.0
    one = (shape.width + gap) / across - gap
    plot = 190.0 if shape.narrow else 240.0
    tall = NAME + ABOVE + plot + AXIS
    # Who was measured in one panel only has the line of that one.
    everyone: dict[str, Entry] = {}
    for panel in shown:
        for number, line in enumerate(panel.lines):
            if line.name not in everyone or _points(line):
                everyone[line.name] = _entry(panel, number)
    entries = list(everyone.values()) if len(everyone) > 1 else []
    rows = math.ceil(len(shown) / across)

    def draw(canvas: Canvas, top: float) -> None:
        for number, panel in enumerate(shown):
            left = number % across * (one + gap)
            upper = top + number // across * tall
            canvas.text(left, upper + TEXT, panel.title, bold=True)
            _axes(canvas, panel, left, upper + NAME + ABOVE, one - EDGE, plot)
        legend.draw(canvas, entries, 0, top + rows * tall + 4, shape.width)

    needed = legend.height(entries, shape.width)
    return rows * tall + (needed + 4 if needed else 0), draw


def nothing(shape: Shape) -> tuple[float, Draw]:
    def draw(canvas: Canvas, top: float) -> None:
        canvas.line([(0, top + 4), (shape.width, top + 4)], FAINT, 0.6)
        canvas.text(shape.width / 2, top + 36, "nothing was measured", colour=FAINT, align="center")
        canvas.line([(0, top + 60), (shape.width, top + 60)], FAINT, 0.6)

    return 64.0, draw


def _points(line: Line) -> bool:
    return any(math.isfinite(x) and math.isfinite(y) for x, y in line.points)


def _entry(figure: Lines, number: int) -> Entry:
    line = figure.lines[number]
    if not _points(line):
        return Entry(f"{line.name}: not measured", FAINT)
    return Entry(
        line.name,
        line.colour,
        _width(figure, line),
        MARKS[number % len(MARKS)] if figure.marks else "",
        hollow=not line.strong,
        strong=line.strong,
    )


def _width(figure: Lines, line: Line) -> float:
    if line.strong:
        return 2.2
    return 1.6 if len(figure.lines) <= FEW else 1.1


def _axes(
    canvas: Canvas, figure: Lines, left: float, top: float, width: float, height: float
) -> tuple[float, list[tuple[float, bool]]]:
    """Draws all but names; returns the right edge, and of each line where it ends."""
    spread = [value for line in figure.lines for _, *values in line.band for value in values]
    found = [y for line in figure.lines for _, y in line.points]
    y = scale(
        figure.y, [*found, *spread], height, lambda _: SMALL - 3 if figure.y.log else SMALL + 14
    )
    room = max(width_of(text, SMALL) for text in y.labels()) + 7
    x = scale(
        figure.x,
        [x for line in figure.lines for x, _ in line.points],
        width - room,
        lambda text: width_of(text, SMALL),
        from_zero=False,
    )
    axes = canvas.axes(left + room, top, width - room, height, x, y)
    for number in range(len(figure.lines)):
        _line(axes, figure, number, x, y)
    canvas.text(left, top - 13, axis_label(figure.y), size=SMALL, colour=FAINT)
    middle = left + room + (width - room) / 2
    text = axis_label(figure.x)
    canvas.text(middle, top + height + 34, text, size=SMALL, colour=FAINT, align="center")
    ends = [_end(line, x, y, top, height) for line in figure.lines]
    return left + width, ends


def _end(line: Line, x: Scale, y: Scale, top: float, height: float) -> tuple[float, bool]:
    """Where the last point of a line is, and whether it is at the right edge."""
    shown = [(a, b) for a, b in line.points if x.shows(a) and y.shows(b)]
    if not shown:
        return top + height, False
    last = max(shown)
    fraction = min(max(y.fraction(last[1]), 0.0), 1.0)
    return top + height * (1 - fraction), x.fraction(last[0]) > 0.97


def _line(axes: Axes, figure: Lines, number: int, x: Scale, y: Scale) -> None:
    line, entry = figure.lines[number], _entry(figure, number)
    order = 3.0 if line.strong else 2.0
    ordered = sorted(line.points, key=lambda point: point[0])
    points = [(a, b if y.shows(b) else math.nan) for a, b in ordered if x.shows(a)]
    band = sorted(
        (a, low, high)
        for a, low, high in line.band
        if x.shows(a) and y.shows(low) and y.shows(high)
    )
    if len(band) > 1 and (line.strong or len(figure.lines) <= FEW):
        axes.fill_between(
            [a for a, _, _ in band],
            [low for _, low, _ in band],
            [high for _, _, high in band],
            color=line.colour,
            alpha=0.14,
            linewidth=0,
            zorder=order - 1,
            step="post" if figure.steps else None,
        )
    elif band:
        axes.vlines(
            [a for a, _, _ in band],
            [low for _, low, _ in band],
            [high for _, _, high in band],
            color=line.colour,
            alpha=0.45,
            linewidth=1.0,
            zorder=order - 0.5,
        )
    # What lies on an edge is drawn whole, unless the study cuts the axis off before some point.
    places = [(x.fraction(a), y.fraction(b)) for a, b in points if math.isfinite(b)]
    clipped = any(not -1e-9 <= place <= 1 + 1e-9 for both in places for place in both)
    axes.plot(
        [a for a, _ in points],
        [b for _, b in points],
        color=line.colour,
        linewidth=entry.width,
        drawstyle="steps-post" if figure.steps else "default",
        solid_joinstyle="round",
        marker=entry.mark or None,
        markersize=4.5,
        markerfacecolor=PAPER if entry.hollow else line.colour,
        clip_on=clipped,
        zorder=order,
    )
    # A point without neighbours has no line, and would not be seen.
    if not entry.mark and (alone := list(_alone(points))):
        axes.plot(
            *zip(*alone, strict=True), color=line.colour, linewidth=0, marker="o", zorder=order
        )


def _alone(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    known = [False, *(math.isfinite(y) for _, y in points), False]
    for number, point in enumerate(points, 1):
        if known[number] and not known[number - 1] and not known[number + 1]:
            yield point


def _names(
    canvas: Canvas,
    entries: Sequence[Entry],
    right: float,
    ends: Sequence[tuple[float, bool]],
    top: float,
    height: float,
) -> None:
    """The names in the order in which the lines end, each led to its line."""
    order = sorted(range(len(entries)), key=lambda number: ends[number][0])
    places = spaced_names([ends[number][0] for number in order], top, height)
    for number, y in zip(order, places, strict=True):
        entry, (end, there) = entries[number], ends[number]
        if there:
            canvas.line([(right + 3, end), (right + LEADER - 18, y)], entry.colour, 0.8)
        if not entry.width:
            canvas.text(right + LEADER, y + TEXT * 0.36, entry.name, colour=FAINT)
            continue
        tick = [(right + LEADER - 18, y), (right + LEADER - 6, y)]
        canvas.line(tick, entry.colour, entry.width)
        canvas.text(right + LEADER, y + TEXT * 0.36, entry.name, bold=entry.strong)


def spaced_names(ends: Sequence[float], top: float, height: float) -> list[float]:
    """Where the names stand whose lines end at these heights."""
    return legend.spaced(ends, NAMES, top, top + height)
