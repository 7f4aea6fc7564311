"""Rows of parameters in which each value stands once, instead of all combinations."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product
from typing import Any

import pytest

#: The modes of a test that is marked `each_mode`. `single` serves by the function of `forking`,
#: which has more than one worker here (tests/modes/test_modes.py compares them).
DIFFERENT = ("forking", "threading", "gevent")


def each_value(*columns: Iterable[Any]) -> list[Any]:
    """As many rows as the longest column has values; the other combinations are marked `full`.

    Where there is a choice, a row has pairs of values that no row before it has.
    """
    lists = [list(column) for column in columns]
    assert not any(hasattr(value, "marks") for column in lists for value in column), "values only"
    rows = [tuple(enumerate(row)) for row in product(*(range(len(column)) for column in lists))]
    chosen: set[tuple[tuple[int, int], ...]] = set()
    values: set[tuple[int, int]] = set()
    pairs: set[Any] = set()

    def gain(row: tuple[tuple[int, int], ...]) -> tuple[int, int]:
        """How many values are new in it, and how many pairs."""
        return len({*row} - values), len({*combinations(row, 2)} - pairs)

    while len(values) < sum(map(len, lists)):
        best = max(rows, key=gain)
        chosen.add(best)
        values.update(best)
        pairs.update(combinations(best, 2))
    return [
        pytest.param(
            *(lists[at][value] for at, value in row),
            marks=() if row in chosen else pytest.mark.full,
        )
        for row in rows
    ]
