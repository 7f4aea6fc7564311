"""Limits and ticks of an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from matplotlib.scale import SymmetricalLogTransform
from matplotlib.ticker import MaxNLocator

from loadtests.reporting.cells import number
from loadtests.reporting.model import Axis

GAP = 10.0
"""Pixels between two labels, at least."""
STEPS = (1, 2, 5, 10)
LINEAR_PART = 0.5
"""How many decades long the way from zero to the lowest value is, on a logarithmic axis."""

Room = Callable[[str], float]
"""How many pixels a label takes along the axis."""


@dataclass(frozen=True)
class Scale:
    """From `low` to `high`. A logarithmic one with a `threshold` also has zero, linear up to it."""

    low: float
    high: float
    log: bool = False
    threshold: float = 0.0
    ticks: tuple[float, ...] = ()

    def fraction(self, value: float) -> float:
        """Where a value lies: 0 is the beginning of the axis, 1 its end."""
        low, high, place = (self._transformed(one) for one in (self.low, self.high, value))
        return (place - low) / (high - low)

    def shows(self, value: float) -> bool:
        """Whether there is a place for a value."""
        if not math.isfinite(value):
            return False
        return not self.log or value > 0 or (value == 0 and self.threshold > 0)

    def labels(self) -> list[str]:
        """What stands at the ticks: plain numbers."""
        if self.log:
            return [number(tick, _places(tick)) for tick in self.ticks]
        step = self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else 1.0
        return [number(tick, _places(step)) for tick in self.ticks]

    def _transformed(self, value: float) -> float:
        if not self.log:
            return value
        if not self.threshold:
            return math.log10(value)
        transform = SymmetricalLogTransform(10, self.threshold, LINEAR_PART)
        return float(transform.transform([value])[0])


def scale(
    axis: Axis, values: Iterable[float], length: float, room: Room, *, from_zero: bool = True
) -> Scale:
    """The scale for these values on an axis of `length` pixels, with as many ticks as have room.

    `from_zero` makes a linear one begin at zero if no value is below, and end it at a tick.
    """
    known = [value for value in values if math.isfinite(value)]
    found = _log(axis, known) if axis.log else None
    candidates = _logs(found) if found else _linears(axis, known, from_zero=from_zero)
    chosen = None
    for chosen in candidates:
        if _fits(chosen, length, room):
            break
    assert chosen is not None
    return chosen


def _places(value: float) -> int:
    return max(0, -math.floor(math.log10(abs(value)) + 1e-9)) if value else 0


def _fits(tried: Scale, length: float, room: Room) -> bool:
    end = -math.inf
    for tick, label in zip(tried.ticks, tried.labels(), strict=True):
        middle, half = tried.fraction(tick) * length, room(label) / 2
        if middle - half < end:
            return False
        end = middle + half + GAP
    return True


def _linears(axis: Axis, known: list[float], *, from_zero: bool) -> Iterator[Scale]:
    low, high = min(known, default=0.0), max(known, default=1.0)
    if low >= 0 and (from_zero or low <= high / 4):
        low = 0.0
    if high <= 0 and from_zero:
        high = 0.0
    low = low if axis.low is None else axis.low
    high = high if axis.high is None else axis.high
    if low >= high:
        low, high = (low, low + 1) if low >= 0 else (low - 1, low)
    whole = all(value == round(value) for value in (low, high, *known))
    for count in (8, 6, 5, 4, 3, 2, 1):
        locator = MaxNLocator(nbins=count, steps=list(STEPS), integer=whole and not from_zero)
        ticks = [float(tick) for tick in locator.tick_values(low, high)]
        first = ticks[0] if from_zero and axis.low is None else low
        last = ticks[-1] if from_zero and axis.high is None else high
        room = (last - first) * 1e-9
        inside = tuple(tick for tick in ticks if first - room <= tick <= last + room)
        yield Scale(first, last, ticks=inside)


def _log(axis: Axis, known: list[float]) -> Scale:
    """Between the 1, 2 or 5 of a decade below the lowest and the one above the highest."""
    positive = [value for value in known if value > 0]
    low, high = min(positive, default=1.0), max(positive, default=10.0)
    if axis.low is not None and axis.low > 0:
        low = axis.low
    if axis.high is not None and axis.high > 0:
        high = axis.high
    rounds = list(_rounds(low, max(low, high)))
    # A single value stands between two ticks.
    nearer, farther = (0.999, 1.001) if low >= high else (1.001, 0.999)
    low = max(tick for tick in rounds if tick <= low * nearer)
    high = min(tick for tick in rounds if tick >= high * farther and tick > low)
    zero = any(value == 0 for value in known)
    return Scale(0.0 if zero else low, high, True, low if zero else 0.0)


def _rounds(low: float, high: float) -> Iterator[float]:
    for power in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2):
        # As text, so that 0.001 is the number that is written so.
        yield from (float(f"{digit}e{power}") for digit in STEPS[:3])


def _logs(found: Scale) -> Iterator[Scale]:
    low = found.threshold or found.low
    zero = (0.0,) if found.threshold else ()
    inside = [tick for tick in _rounds(low, found.high) if low <= tick <= found.high]
    yield replace(found, ticks=(*zero, *inside))
    decades = [tick for tick in inside if math.log10(tick) % 1 < 1e-9] or inside[:1]
    if len(decades) < 2:
        decades = [inside[0], inside[-1]]
    for step in range(1, len(decades) + 1):
        yield replace(found, ticks=(*zero, *decades[::step]))
