"""SVG figures without a plotting library: bars and dots, always with their spread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from loadtests.stats.results import Spread

WIDTH = 880
LEFT = 190
RIGHT = 120
ROW = 27
INK = "#1d2430"
FAINT = "#667080"
GRID = "#e3e7ed"
PAPER = "#ffffff"
FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
CAPTION_CHARACTERS = 128


@dataclass(frozen=True)
class Series:
    """A row of a figure: a server with a value for each kind of mark (None: not measured)."""

    name: str
    colour: str
    values: Sequence[Spread | None]
    strong: bool = False


def linear_ticks(highest: float, about: int = 5) -> list[float]:
    """Round numbers from zero up to the first at or above `highest`."""
    if highest <= 0:
        return [0.0, 1.0]
    raw = highest / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= raw * 0.999)
    return [step * number for number in range(math.ceil(highest / step - 1e-9) + 1)]


def log_ticks(lowest: float, highest: float) -> list[float]:
    """The 1, 2, 5 of every decade that just enclose `lowest` and `highest`."""
    first, last = math.floor(math.log10(lowest)), math.ceil(math.log10(highest))
    ticks = [digit * 10.0**power for power in range(first, last + 1) for digit in (1, 2, 5)]
    start = max(i for i, tick in enumerate(ticks) if tick <= lowest * 1.001)
    end = min(i for i, tick in enumerate(ticks) if tick >= highest * 0.999)
    return ticks[start : end + 1]


def brief(value: float) -> str:
    """A number as a person would label it: 1.2, 14, 320, 12,400."""
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}".removesuffix(".0")
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 13,
    colour: str = INK,
    anchor: str = "start",
    bold: bool = False,
) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" '
        f'text-anchor="{anchor}"{weight}>{escape(text)}</text>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width:g}"/>'
    )


def _wrap(text: str) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) + 1 > CAPTION_CHARACTERS:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _frame(
    title: str,
    subtitle: str,
    axis: str,
    rows: int,
    ticks: Sequence[tuple[float, str]],
    top: int,
    caption: str,
) -> tuple[list[str], list[str]]:
    """What stands before and after the rows of a figure."""
    bottom = top + rows * ROW + 6
    captions = _wrap(caption)
    height = bottom + 54 + 16 * len(captions) + 8
    before = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="{FONT}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="{PAPER}"/>',
        _text(20, 32, title, size=18, bold=True),
        _text(20, 53, subtitle, colour=FAINT),
    ]
    for x, label in ticks:
        before.append(_line(x, top - 4, x, bottom, GRID))
        before.append(_text(x, bottom + 17, label, size=12, colour=FAINT, anchor="middle"))
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
    after = [_text(middle, bottom + 37, axis, size=12, colour=FAINT, anchor="middle")]
    after += [
        _text(20, bottom + 62 + 16 * number, line, size=11, colour=FAINT)
        for number, line in enumerate(captions)
    ]
    after.append("</svg>")
    return before, after


def _whisker(x1: float, x2: float, y: float, colour: str, half: float) -> list[str]:
    if x2 - x1 < 1:
        return []
    return [
        _line(x1, y, x2, y, colour, 1.3),
        _line(x1, y - half, x1, y + half, colour, 1.3),
        _line(x2, y - half, x2, y + half, colour, 1.3),
    ]


def bars(title: str, subtitle: str, axis: str, rows: Sequence[Series], caption: str) -> str:
    """One bar per row from zero, its value behind it, lowest and highest as a whisker."""
    shown = [(row, row.values[0]) for row in rows if row.values and row.values[0] is not None]
    ticks = linear_ticks(max(value.high for _, value in shown if value is not None))
    span = WIDTH - LEFT - RIGHT

    def place(value: float) -> float:
        return LEFT + value / ticks[-1] * span

    top = 76
    before, after = _frame(
        title,
        subtitle,
        axis,
        len(shown),
        [(place(tick), brief(tick)) for tick in ticks],
        top,
        caption,
    )
    body = []
    for number, (row, value) in enumerate(shown):
        assert value is not None
        y = top + number * ROW + ROW / 2
        body.append(_text(LEFT - 10, y + 4.5, row.name, anchor="end", bold=row.strong))
        length = max(place(value.median) - LEFT, 1)
        body.append(
            f'<rect x="{LEFT}" y="{y - 8.5:.1f}" width="{length:.1f}" height="17" rx="2" '
            f'fill="{row.colour}"/>'
        )
        body += _whisker(place(value.low), place(value.high), y, INK, 4)
        edge = max(place(value.high), LEFT + length)
        body.append(_text(edge + 8, y + 4.5, brief(value.median), size=12, bold=row.strong))
    return "\n".join(before + body + after) + "\n"


_MARKS = 4


def _mark(kind: int, x: float, y: float, colour: str) -> str:
    hollow = f'fill="{PAPER}" stroke="{colour}" stroke-width="2"'
    full = f'fill="{colour}"'
    if kind < 2:
        radius, paint = ((4.6, hollow), (5.6, full))[kind]
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" {paint}/>'
    if kind == 2:
        corners, paint = [(0, -6.5), (6.5, 0), (0, 6.5), (-6.5, 0)], hollow
    else:
        corners, paint = [(-6, 5), (6, 5), (0, -6)], full
    points = " ".join(f"{x + right:.1f},{y + down:.1f}" for right, down in corners)
    return f'<polygon points="{points}" {paint}/>'


def dots(
    title: str,
    subtitle: str,
    axis: str,
    marks: Sequence[str | None],
    rows: Sequence[Series],
    caption: str,
) -> str:
    """A mark per value on a logarithmic axis, at most four kinds of them, with whiskers.

    `marks` names the kinds; None leaves one out of the legend.

    Distances mean ratios on such an axis, and dots, unlike bars, claim no length from zero.
    """
    if len(marks) > _MARKS:
        raise ValueError(f"a figure of dots has {_MARKS} kinds of marks, not {len(marks)}")
    found = [value for row in rows for value in row.values if value is not None and value.low > 0]
    ticks = log_ticks(min(value.low for value in found), max(value.high for value in found))
    low, high = math.log(ticks[0]), math.log(ticks[-1])
    span = WIDTH - LEFT - RIGHT / 2

    def place(value: float) -> float:
        return LEFT + (math.log(value) - low) / (high - low) * span

    top = 104
    before, after = _frame(
        title,
        subtitle,
        axis,
        len(rows),
        [(place(tick), brief(tick)) for tick in ticks],
        top,
        caption,
    )
    body = []
    x = float(LEFT)
    for kind, name in enumerate(marks):
        if name is None:
            continue
        body.append(_mark(kind, x, 79, FAINT))
        body.append(_text(x + 12, 83.5, name, size=12, colour=FAINT))
        x += 42 + 6.4 * len(name)
    for number, row in enumerate(rows):
        y = top + number * ROW + ROW / 2
        body.append(_text(LEFT - 10, y + 4.5, row.name, anchor="end", bold=row.strong))
        there = [value for value in row.values if value is not None and value.low > 0]
        if there:
            ends = [place(value.median) for value in there]
            body.append(
                f'<line x1="{min(ends):.1f}" y1="{y:.1f}" x2="{max(ends):.1f}" y2="{y:.1f}" '
                f'stroke="{row.colour}" stroke-width="5" stroke-opacity="0.18"/>'
            )
        for kind, value in enumerate(row.values):
            if value is not None and value.low > 0:
                body += _whisker(place(value.low), place(value.high), y, row.colour, 4)
                body.append(_mark(kind, place(value.median), y, row.colour))
    return "\n".join(before + body + after) + "\n"


PANEL = 170


@dataclass(frozen=True)
class Curve:
    """Values over time; `marked` ones get a dot."""

    name: str
    colour: str
    points: Sequence[tuple[float, float]]
    marked: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True)
class Panel:
    """Curves that share a vertical axis from zero."""

    what: str
    curves: Sequence[Curve]


def curves(title: str, subtitle: str, axis: str, panels: Sequence[Panel]) -> str:
    """Panels below each other over one horizontal axis from zero."""
    left, right, top, gap = 64, 24, 84, 44
    height = top + len(panels) * (PANEL + gap) + 20
    shown = [point for panel in panels for c in panel.curves for point in (*c.points, *c.marked)]
    across = linear_ticks(max((x for x, _ in shown), default=0.0), 10)
    # The last tick may stand far behind the last point.
    end = max((x for x, _ in shown), default=1.0) or 1.0
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="{FONT}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="{PAPER}"/>',
        _text(20, 32, title, size=18, bold=True),
        _text(20, 53, subtitle, colour=FAINT),
    ]
    for number, panel in enumerate(panels):
        upper = top + number * (PANEL + gap)
        lower = upper + PANEL
        highest = max((y for c in panel.curves for _, y in (*c.points, *c.marked)), default=0.0)
        ticks = linear_ticks(highest, 4)

        def place(
            x: float, y: float, lower: float = lower, top_tick: float = ticks[-1]
        ) -> tuple[float, float]:
            return left + x / end * (WIDTH - left - right), lower - y / top_tick * PANEL

        drawn.append(_text(left, upper - 8, panel.what, size=12, colour=FAINT))
        for tick in ticks:
            y = place(0, tick)[1]
            drawn.append(_line(left, y, WIDTH - right, y, GRID))
            drawn.append(_text(left - 8, y + 4, brief(tick), size=12, colour=FAINT, anchor="end"))
        for tick in across:
            if tick <= end:
                x = place(tick, 0)[0]
                drawn.append(
                    _text(x, lower + 17, brief(tick), size=12, colour=FAINT, anchor="middle")
                )
        for place_in_legend, curve in enumerate(panel.curves):
            line = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in curve.points)
            drawn.append(
                f'<polyline points="{line}" fill="none" stroke="{curve.colour}" '
                'stroke-width="1.3" stroke-linejoin="round"/>'
            )
            drawn += [_mark(1, *place(x, y), curve.colour) for x, y in curve.marked]
            drawn.append(
                _text(
                    WIDTH - right - 110 * place_in_legend,
                    upper - 8,
                    curve.name,
                    size=12,
                    colour=curve.colour,
                    anchor="end",
                    bold=True,
                )
            )
    drawn.append(_text(WIDTH / 2, height - 14, axis, size=12, colour=FAINT, anchor="middle"))
    return "\n".join([*drawn, "</svg>"]) + "\n"


PLOT_HEIGHT = 300


def lines(
    title: str,
    subtitle: str,
    axis: str,
    places: Sequence[float],
    rows: Sequence[Series],
    caption: str,
    limit: float,
) -> str:
    """A line per row over `places`, both axes linear and from zero, with whiskers.

    A dashed line marks the `limit` that is promised. Whiskers of different rows stand side by side.
    """
    found = [value for row in rows for value in row.values if value is not None]
    ticks = linear_ticks(max([limit, *(value.high for value in found)]))
    across = linear_ticks(max(places))
    top, bottom = 104, 104 + PLOT_HEIGHT
    left, right = 70, WIDTH - 40
    captions = _wrap(caption)
    height = bottom + 62 + 16 * len(captions)

    def x_of(place: float) -> float:
        return left + place / across[-1] * (right - left)

    def y_of(value: float) -> float:
        return bottom - value / ticks[-1] * (bottom - top)

    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="{FONT}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="{PAPER}"/>',
        _text(20, 32, title, size=18, bold=True),
        _text(20, 53, subtitle, colour=FAINT),
    ]
    for tick in ticks:
        drawn.append(_line(left, y_of(tick), right, y_of(tick), GRID))
        drawn.append(
            _text(left - 8, y_of(tick) + 4, brief(tick), size=12, colour=FAINT, anchor="end")
        )
    for tick in across:
        drawn.append(
            _text(x_of(tick), bottom + 17, brief(tick), size=12, colour=FAINT, anchor="middle")
        )
    drawn.append(
        f'<line x1="{left}" y1="{y_of(limit):.1f}" x2="{right}" y2="{y_of(limit):.1f}" '
        f'stroke="{FAINT}" stroke-dasharray="5 4"/>'
    )
    legend = float(left)
    for number, row in enumerate(rows):
        shift = (number - (len(rows) - 1) / 2) * 7
        drawn.append(_mark(number % _MARKS, legend, 79, row.colour))
        drawn.append(_text(legend + 12, 83.5, row.name, size=12, bold=row.strong))
        legend += 42 + 7 * len(row.name)
        there = [
            (x_of(place) + shift, value)
            for place, value in zip(places, row.values, strict=True)
            if value is not None
        ]
        joined = " ".join(f"{x:.1f},{y_of(value.median):.1f}" for x, value in there)
        drawn.append(
            f'<polyline points="{joined}" fill="none" stroke="{row.colour}" stroke-width="2"/>'
        )
        for x, value in there:
            drawn.append(_line(x, y_of(value.low), x, y_of(value.high), row.colour, 1.3))
            drawn.append(_mark(number % _MARKS, x, y_of(value.median), row.colour))
    drawn.append(
        _text((left + right) / 2, bottom + 37, axis, size=12, colour=FAINT, anchor="middle")
    )
    drawn += [
        _text(20, bottom + 62 + 16 * number, line, size=11, colour=FAINT)
        for number, line in enumerate(captions)
    ]
    drawn.append("</svg>")
    return "\n".join(drawn) + "\n"
