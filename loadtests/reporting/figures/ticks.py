"""Scales, limits and ticks of axes."""

from __future__ import annotations

import math
from collections.abc import Iterable

from matplotlib.axis import Axis as Drawn
from matplotlib.ticker import MaxNLocator

from loadtests.reporting.cells import brief
from loadtests.reporting.model import Axis

DIGITS = (1, 2, 5)


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
    else:
        low, high, ticks = _linear(axis, known, room, from_zero=from_zero)
    if axis.log and low == 0:
        drawn._set_axes_scale("symlog", linthresh=ticks[1], linscale=0.5)  # type: ignore[attr-defined]
    elif axis.log:
        drawn._set_axes_scale("log")  # type: ignore[attr-defined]
    drawn.set_ticks(ticks, [brief(tick) for tick in ticks])
    drawn.set_ticks([], minor=True)
    drawn.set_view_interval(low, high, ignore=True)
    drawn.axes.autoscale(enable=False)


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
