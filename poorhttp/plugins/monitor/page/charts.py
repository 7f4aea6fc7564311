"""Charts of the last hour and bars of single requests, as SVG without scripts and styles.

A plot is stretched to the width of the page; its labels are HTML beside it, so that they keep their
size on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from poorhttp.plugins.monitor.derived import units
from poorhttp.plugins.monitor.page.html import Html, html, join

#: Seconds that a chart shows, and its height, in units of its coordinates.
HOUR, HEIGHT = 3600, 100

#: Seconds between the ends of two slots whose points are not joined by a line.
GAP = 100.0

#: A slot's begin and end in seconds from the left side of the chart, and its value; `None`: none.
Point = tuple[float, float, "float | None"]

#: The lines of a chart: name, class, points.
Series = Sequence[tuple[str, str, Sequence[Point]]]


def bars(title: str, series: Series, label: Callable[[float], str], now: Sequence[float]) -> Html:
    """Return a chart of bars, one behind the other, from zero up.

    Args:
        title: what is shown.
        series: the largest values first.
        label: makes text of a value.
        now: the value of each series at this moment, for the legend.
    """
    most = _nice(max((value or 0 for _, _, points in series for *_, value in points), default=0))

    def path(points: Sequence[Point]) -> str:
        return "".join(
            f"M{begin:.0f} {HEIGHT}V{_y(value / most)}H{end:.0f}V{HEIGHT}Z"
            for begin, end, value in points
            if value
        )

    shapes = [(f"bar {kind}", path(points)) for _, kind, points in series]
    legend = [
        (name, kind, label(value)) for (name, kind, _), value in zip(series, now, strict=True)
    ]
    return _chart(title, shapes, legend, [label(most), label(most / 2), "0"])


def octets(title: str, series: Series, now: Sequence[object]) -> Html:
    """Return a chart of lines of bytes per second, with a linear scale from zero; see `bars`."""
    highest = max((value or 0 for _, _, points in series for *_, value in points), default=0)
    unit = 1.0
    while highest >= 1000 * unit:
        unit *= 1024
    most = _nice(highest / unit) * unit
    shapes = [
        (f"line {kind}", _line(points, lambda value: value / most)) for _, kind, points in series
    ]
    legend = [(name, kind, now) for (name, kind, _), now in zip(series, now, strict=True)]
    return _chart(title, shapes, legend, [units.octets(most), units.octets(most / 2), "0"])


def durations(title: str, series: Series, now: Sequence[object]) -> Html:
    """Return a chart of durations in seconds with a logarithmic scale; see `bars`."""
    values = [value for _, _, points in series for *_, value in points if value]
    lowest = math.floor(math.log10(min(values, default=0.001)) + 1e-9)
    highest = max(lowest + 1, math.ceil(math.log10(max(values, default=0.01)) - 1e-9))

    def height(value: float) -> float:
        return (math.log10(max(value, 1e-9)) - lowest) / (highest - lowest)

    shapes = [(f"line {kind}", _line(points, height)) for _, kind, points in series]
    decades = [units.seconds(10.0**each) for each in range(highest, lowest - 1, -1)]
    legend = [(name, kind, now) for (name, kind, _), now in zip(series, now, strict=True)]
    return _chart(title, shapes, legend, decades)


def stack(parts: Sequence[tuple[str, str, float]], whole: float) -> Html:
    """Return a bar of parts side by side, each with its name, class and length of `whole`."""
    begin, shapes = 0.0, []
    for name, kind, length in parts:
        # Even the shortest part can be seen.
        width = max(100 * length / whole, 0.4) if whole else 0.0
        text = f"{name} {units.seconds(length)}"
        rect = '<rect class="{}" x="{}" y="0" width="{}" height="10"><title>{}</title></rect>'
        shapes.append(html(rect, kind, f"{begin:.2f}", f"{width:.2f}", text))
        begin += width
    label = ", ".join(f"{name} {units.seconds(length)}" for name, _, length in parts)
    return html(
        '<svg class="stack" role="img" aria-label="{}" viewBox="0 0 101 10" '
        'preserveAspectRatio="none">{}</svg>',
        *(label, join(shapes)),
    )


def _chart(
    title: str,
    shapes: Sequence[tuple[str, str]],
    legend: Sequence[tuple[str, str, object]],
    marks: Sequence[str],
) -> Html:
    """Return a figure: title and legend, marks of the vertical axis from the top, and the plot."""
    last = max(1, len(marks) - 1)
    grid = "".join(f"M0 {_y(1 - each / last)}H{HOUR}" for each in range(len(marks)))
    grid += "".join(f"M{each} 0V{HEIGHT}" for each in range(0, HOUR + 1, HOUR // 4))
    said = ", ".join(f"{name} {value}" for name, _, value in legend)
    return html(
        '<figure class="chart"><figcaption><b>{}</b><span class="legend">{}</span></figcaption>'
        '<div class="plot"><div class="marks" aria-hidden="true">{}</div>'
        '<svg role="img" aria-label="{}" viewBox="0 0 {} {}" preserveAspectRatio="none">'
        '<path class="grid" d="{}"/>{}</svg>'
        '<div class="times" aria-hidden="true"><span>60 min</span><span class="inner">45'
        '</span><span>30</span><span class="inner">15</span><span>now</span></div></div></figure>',
        title,
        join(
            html('<span><i class="{}"></i>{} <b>{}</b></span> ', kind, name, value)
            for name, kind, value in legend
        ),
        join(html("<span>{}</span>", mark) for mark in marks),
        f"{title} over the last hour; now: {said}",
        HOUR,
        HEIGHT,
        grid,
        join(html('<path class="{}" d="{}"/>', kind, path) for kind, path in shapes if path),
    )


def _line(points: Sequence[Point], height: Callable[[float], float]) -> str:
    """Return the path of a line through the middles of slots, broken where there is no value."""
    path, before = [], -GAP
    for begin, end, value in points:
        if value is None:
            continue
        at = f"{(begin + end) / 2:.0f} {_y(height(value))}"
        # The line of no length is drawn as a dot.
        path.append(f"L{at}" if end - before < GAP else f"M{at}h.1")
        before = end
    return "".join(path)


def _y(part: float) -> str:
    """Return the vertical coordinate of a value from 0 to 1."""
    return f"{HEIGHT * (1 - min(1.0, max(0.0, part))):.1f}"


def _nice(value: float) -> float:
    """Return the next higher value of 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(each * power for each in (1, 2, 5, 10, 20) if each * power >= value)
