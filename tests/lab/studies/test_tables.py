"""Sentences and tables that compare servers: who is best, and what noise does not separate."""

from __future__ import annotations

from typing import Any

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


class TestAnswer:
    def test_the_best_and_by_how_much(self) -> None:
        found = {"slow": rounds(9, 10, 11), "fast": rounds(2, 2, 3), "middle": rounds(4, 5, 6)}
        assert tables.answer("Time", found, "µs") == (
            "Time: fast (2 µs) is best; the next, middle (5 µs), takes 2.50 times as much, and "
            "slow (10 µs) is last."
        )
        assert tables.answer("Rate", found, "/s", highest=True) == (
            "Rate: slow (10/s) is best; the next, middle (5/s), reaches 50% of that, and "
            "fast (2/s) is last."
        )

    def test_what_noise_does_not_separate(self) -> None:
        found = {"a": rounds(1, 2, 4), "b": rounds(3, 3, 5), "c": rounds(8, 9, 9)}
        assert tables.answer("Time", found, "ms") == (
            "Time: the rounds show no clear difference between a (2 ms) and b (3 ms), which are "
            "best; the next, c (9 ms), takes 4.50 times as much."
        )

    def test_many_of_those_are_counted(self) -> None:
        found = {name: rounds(1, 2) for name in "abcdef"}
        said = tables.answer("Time", found, "ms")
        assert "d (1.5 ms) and 2 more, which are best" in said

    def test_a_single_round_says_that_it_is_one(self) -> None:
        said = tables.answer("Time", {"a": rounds(1), "b": rounds(2)}, "ms")
        assert said.endswith("each was measured once, so small differences may be noise.")

    def test_the_baseline_is_no_server(self) -> None:
        found = {"floor": rounds(1), "a": rounds(2)}
        assert tables.answer("Time", found, "ms") == "Time: a (2 ms)."
        assert tables.answer("Time", {}, "ms") == ""


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
