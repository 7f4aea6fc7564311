"""Legends: names in columns below a figure, or at the ends of its lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.reporting.figures.canvas import FAINT, INK, TEXT, Canvas, width_of

ROW = 18.0
SWATCH = 24.0
BETWEEN = 18.0


@dataclass(frozen=True)
class Entry:
    """A name with its line (none if it has no `width`) and its mark."""

    name: str
    colour: str
    width: float = 0.0
    mark: str = ""
    size: float = 5.5
    hollow: bool = False
    strong: bool = False


def _columns(entries: Sequence[Entry], width: float) -> tuple[int, float]:
    """How many there are, and how wide one is."""
    widest = max((width_of(e.name, bold=e.strong) for e in entries), default=0.0)
    one = SWATCH + widest + BETWEEN
    return max(1, min(len(entries), int((width + BETWEEN) // one))), one


def height(entries: Sequence[Entry], width: float) -> float:
    """Pixels that a legend needs."""
    return math.ceil(len(entries) / _columns(entries, width)[0]) * ROW if entries else 0.0


def draw(canvas: Canvas, entries: Sequence[Entry], left: float, top: float, width: float) -> None:
    """The legend, read down its columns."""
    columns, one = _columns(entries, width)
    rows = math.ceil(len(entries) / columns)
    for number, entry in enumerate(entries):
        x, y = left + number // rows * one, top + (number % rows + 0.5) * ROW
        swatch(canvas, entry, x, y)
        canvas.text(
            x + SWATCH,
            y + TEXT * 0.36,
            entry.name,
            bold=entry.strong,
            colour=INK if entry.width or entry.mark else FAINT,
        )


def swatch(canvas: Canvas, entry: Entry, x: float, y: float) -> None:
    """What stands before the name."""
    if entry.width:
        canvas.line([(x, y), (x + 17, y)], entry.colour, entry.width)
    if entry.mark:
        canvas.line(
            [(x + 8.5, y)], entry.colour, 0, entry.mark, size=entry.size, hollow=entry.hollow
        )


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
