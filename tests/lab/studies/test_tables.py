"""Sentences and tables that compare servers: who is best, and what noise does not separate."""

from __future__ import annotations

from typing import Any

import pytest

from loadtests.reporting.model import Column
from loadtests.stats.results import Results, Spread, spread
from loadtests.studies import tables
from loadtests.studies.catalogue import STUDIES


def rounds(*values: float) -> Spread:
    found = spread(values)
    assert found is not None
    return found


def sample(server: str, number: int, **fields: Any) -> dict[str, Any]:
    return {"run": "r", "scenario": "s", "server": server, "round": number, **fields}


THREE = {"slow": rounds(9, 10, 11), "fast": rounds(2, 2, 3), "middle": rounds(4, 5, 6)}
ANSWERS: list[tuple[dict[str, Spread], str, bool, str]] = [
    (
        *(THREE, "µs", False),
        "Time: fast (2 µs) is best; the next, middle (5 µs), takes 2.50 times as much, and "
        "slow (10 µs) is last.",
    ),
    (
        *(THREE, "/s", True),
        "Time: slow (10/s) is best; the next, middle (5/s), reaches 50% of that, and "
        "fast (2/s) is last.",
    ),
    # What noise does not separate; many of those are counted.
    (
        *({"a": rounds(1, 2, 4), "b": rounds(3, 3, 5), "c": rounds(8, 9, 9)}, "ms", False),
        "Time: the rounds show no clear difference between a (2 ms) and b (3 ms), which are "
        "best; the next, c (9 ms), takes 4.50 times as much.",
    ),
    (
        *({name: rounds(1, 2) for name in "abcdef"}, "ms", False),
        "Time: the rounds show no clear difference between a (1.5 ms), b (1.5 ms), c (1.5 ms), "
        "d (1.5 ms) and 2 more, which are best.",
    ),
    # A single round says that it is one.
    (
        *({"a": rounds(1), "b": rounds(2)}, "ms", False),
        "Time: a (1 ms) is best; the next, b (2 ms), takes 2.00 times as much; each was measured "
        "once, so small differences may be noise.",
    ),
    # The baseline is no server.
    ({"floor": rounds(1), "a": rounds(2)}, "ms", False, "Time: a (2 ms)."),
    ({}, "ms", False, ""),
]


@pytest.mark.parametrize(("found", "unit", "highest", "said"), ANSWERS)
def test_answer(found: dict[str, Spread], unit: str, highest: bool, said: str) -> None:
    assert tables.answer("Time", found, unit, highest=highest) == said


def test_a_table_is_ordered_by_its_ranking() -> None:
    samples = [
        sample("slow", 0, time=9.0, failed=1),
        sample("poorhttp single", 0, time=2.0, failed=0),
        sample("slow", 1, time=7.0, failed=2),
        sample("without", 0, failed=0),
    ]
    values = [(Column("time", "s"), "time"), (Column("failed"), tables.total("failed"))]
    table = tables.compared("name", "Title", samples, values, "time")
    assert [row[0] for row in table.rows] == ["poorhttp single", "slow", "without"]
    assert table.rows[1][1:] == [rounds(7, 9), 3.0]
    assert table.rows[2][1] is None
    assert table.ranking == "time"
    assert table.strong == {"poorhttp single"}


def test_a_step_that_was_taken_again_counts_once() -> None:
    samples = [sample("a", 0, time=1.0), sample("a", 1, time=2.0), sample("a", 0, time=3.0)]
    assert [one["time"] for one in tables.latest(samples)] == [3.0, 2.0]


def test_a_report_of_nothing() -> None:
    for name in ("memory", "deadconn", "webbench", "influence", "overload"):
        assert STUDIES[name].report(Results([])) == [], name
