"""Formatting of cells in the tables that compare servers."""

from __future__ import annotations

from collections.abc import Callable

from loadtests.stats.results import Results, Spread

Cell = Callable[[Results, str, str], str]
"""From results, scenario and server."""


def number(found: Spread | None, places: int, scale: float = 1) -> str:
    """The median; nothing where nothing was measured."""
    return f"{found.median * scale:,.{places}f}" if found else ""


def median(field: str, places: int = 0, scale: float = 1) -> Cell:
    """The median of a field of the samples."""
    return lambda results, scenario, server: number(
        results.median(scenario, server, field), places, scale
    )
