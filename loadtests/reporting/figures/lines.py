"""Line charts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from loadtests.reporting.cells import axis_label
from loadtests.reporting.figures.chart import (
    FAINT,
    LETTER,
    MARKS,
    NARROW,
    PAPER,
    SMALL,
    chart,
    nothing,
)
from loadtests.reporting.figures.ticks import scale, shown
from loadtests.reporting.model import Line, Lines, Panels

AROUND = 70
"""Pixels above and below the axes: labels and numbers."""
NAMES = 16.0
"""From one name at the end of a line to the next."""
FEW = 6
"""So many bands can be told apart."""


def lines(figure: Lines, width: int) -> Figure:
    """One figure: names stand at the ends of its lines if there is room, else below."""
    if not any(map(_measured, figure.lines)):
        return nothing(width)
    handles = [_handle(figure, number) for number in range(len(figure.lines))]
    if width == NARROW or len(handles) < 2:
        made = chart(
            width,
            AROUND + (230 if width == NARROW else 300),
            handles if len(handles) > 1 else (),
        )
        _draw(made.subplots(), figure, width)
        return made
    made = chart(width, AROUND + max(300.0, NAMES * len(handles) + 40))
    axes = made.subplots()
    _draw(axes, figure, width - max(len(line.name) for line in figure.lines) * LETTER)
    _names(axes, figure, handles)
    return made


def panels(figure: Panels, width: int) -> Figure:
    """Several figures with one legend."""
    drawn = [panel for panel in figure.panels if any(map(_measured, panel.lines))]
    if not drawn:
        return nothing(width)
    across = 1 if width == NARROW else min(len(drawn), 3 if len(drawn) != 4 else 2)
    rows = math.ceil(len(drawn) / across)
    # Who was measured in one panel only has the line of that one.
    handles: dict[str, Line2D] = {}
    for panel in drawn:
        for number, line in enumerate(panel.lines):
            if line.name not in handles or _measured(line):
                handles[line.name] = _handle(panel, number)
    made = chart(
        width,
        rows * (AROUND + 24 + (190 if width == NARROW else 240)),
        list(handles.values()) if len(handles) > 1 else (),
    )
    places = made.subplots(rows, across, squeeze=False).flat
    for axes, panel in zip(places, drawn, strict=False):
        axes.set_title(panel.title)
        _draw(axes, panel, width / across)
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
        marker=MARKS[number % len(MARKS)] if figure.marks else None,
        markerfacecolor=line.colour if line.strong else PAPER,
        drawstyle="steps-post" if figure.steps else "default",
        label=line.name,
        gid="bold" if line.strong else None,
    )


def _draw(axes: Axes, figure: Lines, width: float) -> None:
    """All but names, on axes that are about so many pixels wide."""
    ys = [y for line in figure.lines for _, y in line.points]
    ys += [y for line in figure.lines for _, *ends in line.band for y in ends]
    xs = [x for line in figure.lines for x, _ in line.points]
    scale(axes.yaxis, figure.y, ys, 14 if figure.y.log else 8)
    scale(axes.xaxis, figure.x, xs, int(width // 70), from_zero=False)
    for number in range(len(figure.lines)):
        _line(axes, figure, number)
    axes.set_xlabel(axis_label(figure.x))
    axes.annotate(
        axis_label(figure.y),
        (0, 1),
        (-4, 8),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=SMALL,
        color=FAINT,
    )


def _line(axes: Axes, figure: Lines, number: int) -> None:
    line, handle = figure.lines[number], _handle(figure, number)
    order = 3.0 if line.strong else 2.0
    ordered = sorted(line.points, key=lambda point: point[0])
    points = [(x, y if shown(figure.y, y) else math.nan) for x, y in ordered if shown(figure.x, x)]
    band = sorted(
        (x, low, high)
        for x, low, high in line.band
        if shown(figure.x, x) and shown(figure.y, low) and shown(figure.y, high)
    )
    xs, lows, highs = ([one[place] for one in band] for place in range(3))
    if len(band) > 1 and (line.strong or len(figure.lines) <= FEW):
        step: Literal["post"] | None = "post" if figure.steps else None
        look: dict[str, Any] = {
            "color": line.colour,
            "alpha": 0.14,
            "linewidth": 0,
            "zorder": order - 1,
        }
        axes.fill_between(xs, lows, highs, step=step, **look)
    elif band:
        axes.vlines(xs, lows, highs, color=line.colour, alpha=0.45, linewidth=1, zorder=1.5)
    if not points:
        return
    # What lies on an edge is drawn whole, unless the study cuts the axis off.
    cut = any(end is not None for axis in (figure.x, figure.y) for end in (axis.low, axis.high))
    handle.set_data(*zip(*points, strict=True))
    handle.set(clip_on=cut, zorder=order, gid=None)
    axes.add_line(handle)
    # A point without neighbours has no line, and would not be seen.
    if not figure.marks and (alone := list(_alone(points))):
        axes.plot(
            *zip(*alone, strict=True), color=line.colour, linewidth=0, marker="o", zorder=order
        )


def _alone(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    known = [False, *(math.isfinite(y) for _, y in points), False]
    for number, point in enumerate(points, 1):
        if known[number] and not known[number - 1] and not known[number + 1]:
            yield point


def _names(axes: Axes, figure: Lines, handles: Sequence[Line2D]) -> None:
    """The names in the order in which the lines end, each led to its line."""
    ends = [_end(axes, figure, line) for line in figure.lines]
    order = sorted(range(len(ends)), key=lambda number: ends[number][1])
    names = [
        axes.text(
            1.065,
            0.5,
            str(handle.get_label()),
            transform=axes.transAxes,
            va="center_baseline",
            color=None if handle.get_linewidth() else FAINT,
            weight="bold" if line.strong else "normal",
        )
        for handle, line in zip(handles, figure.lines, strict=True)
    ]
    # How tall the axes are is known as soon as the widths of the names are.
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]
    places = spaced([ends[number][1] for number in order], NAMES / axes.bbox.height, 0.0, 1.0)
    for number, place in zip(order, places, strict=True):
        names[number].set_y(place)
        there, end = ends[number]
        colour, width = figure.lines[number].colour, handles[number].get_linewidth()
        for begin, stop, first, thick in ((1.005, 1.035, end, 0.8), (1.035, 1.055, place, width)):
            if width and (there or thick == width):
                axes.add_line(
                    Line2D(
                        [begin, stop],
                        [first, place],
                        color=colour,
                        linewidth=thick,
                        transform=axes.transAxes,
                        clip_on=False,
                    )
                )


def _end(axes: Axes, figure: Lines, line: Line) -> tuple[bool, float]:
    """Whether the last point of a line is at the right edge, and where it is: 0 to 1."""
    points = [
        point for point in line.points if shown(figure.x, point[0]) and shown(figure.y, point[1])
    ]
    if not points:
        return False, 0.0
    x, y = axes.transAxes.inverted().transform(axes.transData.transform(max(points)))
    return bool(x > 0.97), float(min(max(y, 0.0), 1.0))


def spaced(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The places nearest to the wanted ones, which ascend: `gap` apart and within the bounds."""
    # Isotonic regression: neighbours that are too near form a block around their mean.
    blocks: list[tuple[float, int]] = []
    for number, place in enumerate(wanted):
        mean, count = place - number * gap, 1
        while blocks and blocks[-1][0] > mean:
            other, members = blocks.pop()
            mean = (other * members + mean * count) / (members + count)
            count += members
        blocks.append((mean, count))
    starts = [mean for mean, count in blocks for _ in range(count)]
    last = max(low, high - gap * (len(wanted) - 1))
    return [min(max(start, low), last) + number * gap for number, start in enumerate(starts)]
