"""Line charts."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.optimize import isotonic_regression

from loadtests.reporting.cells import heading
from loadtests.reporting.figures import chart
from loadtests.reporting.figures.chart import FAINT, NARROW, Look, scale, shown
from loadtests.reporting.model import Line, Lines, Panels

AROUND = 70
"""Pixels above and below the axes: labels and numbers."""
NAMES = 16.0
"""From one name at the end of a line to the next."""
FEW = 6
"""So many bands can be told apart."""


def lines(figure: Lines | Panels, width: int) -> Figure:
    """A figure, or several with one legend; of one, names stand at its lines if there is room."""
    one, narrow = isinstance(figure, Lines), width == NARROW
    panels = [figure] if isinstance(figure, Lines) else figure.panels
    drawn = [panel for panel in panels if any(map(_measured, panel.lines))]
    if not drawn:
        return chart.nothing(width)
    # Who was measured in one panel only has the line of that one.
    named: dict[str, Line2D] = {}
    for panel in drawn:
        for number, line in enumerate(panel.lines):
            if line.name not in named or _measured(line):
                named[line.name] = _handle(panel, number)
    handles = list(named.values()) if len(named) > 1 else []
    if one and handles and not narrow:
        made = chart.chart(width, AROUND + max(300.0, NAMES * len(handles) + 40))
        axes = made.subplots()
        _draw(axes, drawn[0], width - max(map(len, named)) * chart.LETTER, drawn)
        _names(made, axes, drawn[0], handles)
        return made
    across = 1 if narrow else min(len(drawn), 3 if len(drawn) != 4 else 2)
    rows = math.ceil(len(drawn) / across)
    tall = AROUND + (230 if narrow else 300)
    if not one:
        tall = rows * (AROUND + 24 + (190 if narrow else 240))
    made = chart.chart(width, tall, handles)
    places = made.subplots(rows, across, squeeze=False).flat
    for axes, panel in zip(places, drawn, strict=False):
        title = textwrap.fill(panel.title, int(width / across / chart.LETTER))
        axes.set_title("" if one else title)
        _draw(axes, panel, width / across, [other for other in drawn if other.y == panel.y])
    for axes in list(places)[len(drawn) :]:
        axes.remove()
    return made


def _measured(line: Line) -> bool:
    return any(math.isfinite(x) and math.isfinite(y) for x, y in line.points)


def _handle(figure: Lines, number: int) -> Line2D:
    """The line without its points, as a legend has it."""
    line = figure.lines[number]
    if not _measured(line):
        return Line2D([], [], linewidth=0, label=f"{line.name}: not measured")
    return Line2D(
        [],
        [],
        color=line.colour,
        linewidth=2.2 if line.strong else 1.6 if len(figure.lines) <= FEW else 1.1,
        marker=chart.MARKS[number % len(chart.MARKS)] if figure.marks else None,
        markerfacecolor=line.colour if line.strong else chart.PAPER,
        drawstyle="steps-post" if figure.steps else "default",
        label=line.name,
        gid="bold" if line.strong else None,
    )


def _draw(axes: Axes, figure: Lines, width: float, alike: Sequence[Lines]) -> None:
    """All but names, on axes that are about so many pixels wide.

    Figures of the same quantity have the same scale: that of all lines of those `alike`.
    """
    every = [line for one in alike for line in one.lines]
    ys = [y for line in every for _, y in line.points]
    ys += [y for line in every for _, *ends in line.band for y in ends]
    xs = [x for line in figure.lines for x, _ in line.points]
    scale(axes.yaxis, figure.y, ys, 14 if figure.y.log else 8)
    scale(axes.xaxis, figure.x, xs, int(width // 70), from_zero=False)
    for number in range(len(figure.lines)):
        _line(axes, figure, number)
    axes.set_xlabel(heading(figure.x))
    chart.note(axes, heading(figure.y), (0, 1), (-4, 8), xycoords="axes fraction")


def _line(axes: Axes, figure: Lines, number: int) -> None:
    line, handle = figure.lines[number], _handle(figure, number)
    colour, order = line.colour, 3.0 if line.strong else 2.0
    across, up = figure.x, figure.y
    ordered = sorted((p for p in line.points if shown(across, p[0])), key=lambda p: p[0])
    points = [(x, y if shown(up, y) else math.nan) for x, y in ordered]
    band = sorted(b for b in line.band if shown(across, b[0]) and all(shown(up, y) for y in b[1:]))
    xs, lows, highs = ([one[place] for one in band] for place in range(3))
    if len(band) > 1 and (line.strong or len(figure.lines) <= FEW):
        look: Look = {"color": colour, "alpha": 0.14, "linewidth": 0, "zorder": order - 1}
        axes.fill_between(xs, lows, highs, step="post" if figure.steps else None, **look)
    elif band:
        axes.vlines(xs, lows, highs, color=colour, alpha=0.45, linewidth=1, zorder=1.5)
    if not points:
        return
    # What lies on an edge is drawn whole, unless the study cuts the axis off.
    cut = any(end is not None for axis in (across, up) for end in (axis.low, axis.high))
    handle.set_data(*zip(*points, strict=True))
    handle.set(clip_on=cut, zorder=order, gid=None)
    axes.add_line(handle)
    # A point without neighbours has no line, and would not be seen.
    known = [False, *(math.isfinite(y) for _, y in points), False]
    near = zip(points, known, known[1:], known[2:], strict=False)
    alone = [point for point, *three in near if three == [False, True, False]]
    if alone and not figure.marks:
        axes.plot(*zip(*alone, strict=True), color=colour, linewidth=0, marker="o", zorder=order)


def _names(made: Figure, axes: Axes, figure: Lines, handles: Sequence[Line2D]) -> None:
    """The names in the order in which the lines end, each led to its line."""
    ends = [_end(axes, figure, line) for line in figure.lines]
    names = []
    for handle, line in zip(handles, figure.lines, strict=True):
        name = axes.text(1.065, 0.5, str(handle.get_label()), transform=axes.transAxes)
        name.set(va="center_baseline", weight="bold" if line.strong else "normal")
        if not handle.get_linewidth():
            name.set_color(FAINT)
        names.append(name)
    # How tall the axes are is known as soon as the widths of the names are.
    engine = made.get_layout_engine()
    assert engine is not None
    engine.execute(made)
    order = sorted(range(len(ends)), key=lambda number: ends[number][1])
    places = spaced([ends[number][1] for number in order], NAMES / axes.bbox.height, 0.0, 1.0)
    for number, place in zip(order, places, strict=True):
        names[number].set_y(place)
        there, end = ends[number]
        width = handles[number].get_linewidth()
        colour = figure.lines[number].colour
        look: Look = {"color": colour, "transform": axes.transAxes, "clip_on": False}
        if width and there:
            axes.add_line(Line2D([1.005, 1.035], [end, place], linewidth=0.8, **look))
        if width:
            axes.add_line(Line2D([1.035, 1.055], [place, place], linewidth=width, **look))


def _end(axes: Axes, figure: Lines, line: Line) -> tuple[bool, float]:
    """Whether the last point of a line is at the right edge, and where it is: 0 to 1."""
    points = [(x, y) for x, y in line.points if shown(figure.x, x) and shown(figure.y, y)]
    if not points:
        return False, 0.0
    x, y = axes.transAxes.inverted().transform(axes.transData.transform(max(points)))
    return bool(x > 0.97), float(min(max(y, 0.0), 1.0))


def spaced(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The places nearest to the wanted ones, which ascend: `gap` apart and within the bounds."""
    steps = gap * np.arange(len(wanted))
    starts = isotonic_regression(np.array(wanted) - steps).x
    return list(np.clip(starts, low, max(low, high - steps[-1])) + steps)
