"""The study `parallel`: overload, a small run against real servers, and its report."""

from __future__ import annotations

from argparse import Namespace
from array import array
from dataclasses import replace
from typing import Any

import pytest

from loadtests import store
from loadtests.clients.native.fetch import Trace
from loadtests.measure.cpu_affinity import cores
from loadtests.reporting.model import Table
from loadtests.servers.registry import Server
from loadtests.stats.results import Results
from loadtests.studies import engine, parallel
from loadtests.studies.originals import AT_ONCE
from loadtests.studies.study import TINY, Scale

SINGLE, THREADING = "poorhttp single", "poorhttp threading 8"
FLOODED_AT = AT_ONCE + AT_ONCE // 2


def _chosen(*names: str) -> list[Server]:
    return [one for one in parallel.STUDY.servers() if one.name in names]


def _lab(writing: store.Store, scale: Scale) -> engine.Lab:
    return engine.Lab(writing, scale.seconds, scale.rounds, *cores())


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[store.Record]:
    """A tiny run: one that is flooded, one that is not, and one that never answers."""
    writing = store.Store(tmp_path_factory.mktemp("parallel") / "results.jsonl", "now")
    lab = _lab(writing, TINY)
    chosen = _chosen(SINGLE, THREADING)
    ends = replace(chosen[0], name="ends", command="{python} -c raise~SystemExit(3)")
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(parallel.LIMITS, "most_unanswered", FLOODED_AT)
        options = Namespace(servers=["some"], parallel_seconds=None)
        planned = parallel.STUDY.plan(lab, TINY, [*chosen, ends], options)
        engine.run(lab, planned, "test", study="parallel")
    writing.close()
    return writing.records


@pytest.fixture
def samples(records: list[store.Record]) -> dict[tuple[str, str], dict[str, Any]]:
    """What was measured, by handler and server."""
    found = [record for record in records if record["record"] == "sample"]
    return {(one["scenario"], one["server"]): one for one in found}


def _trace(*requests: tuple[int, int]) -> Trace:
    """Requests that should have been made, and ended, at these milliseconds."""
    numbers = array("Q")
    for intended, ended in requests:
        times = [time * 1000 for time in (intended, intended, intended, ended, ended)]
        numbers.extend([*times, 100, 200, 0, 0])
    return Trace(numbers, began=0, seconds=1, stopped=False)


class TestUnanswered:
    def test_in_each_second(self) -> None:
        trace = _trace((0, 100), (0, 2500), (1000, 1100), (1000, 1200), (2000, 2100))
        assert parallel.unanswered(trace) == [2, 3, 2]

    def test_who_is_over_makes_room_before_the_next_comes(self) -> None:
        assert parallel.unanswered(_trace((0, 1000), (1000, 1500))) == [1, 1]

    def test_a_second_in_which_nothing_happens(self) -> None:
        assert parallel.unanswered(_trace((0, 3500), (0, 3600))) == [2, 2, 2, 2]


class TestRun:
    def test_counts(self, samples: dict[tuple[str, str], dict[str, Any]]) -> None:
        assert set(samples) == {
            (handler, server) for handler in ("light", "slow") for server in (SINGLE, THREADING)
        }
        for one in samples.values():
            assert one["requests"] + one["failed"] == one["asked"]
            assert one["asked"] % AT_ONCE == 0 or one["flooded_after"]
            assert max(one["unanswered"]) == one["most_unanswered"] <= FLOODED_AT
            assert 0 < one["answer_us"] <= one["mean_us"] <= one["max_us"]
            assert one["rate"] * one["seconds"] == pytest.approx(one["requests"])

    def test_who_does_one_thing_at_a_time_is_flooded(
        self, samples: dict[tuple[str, str], dict[str, Any]]
    ) -> None:
        flooded = samples["slow", SINGLE]
        # By the second hundred, which comes after a second.
        assert flooded["flooded_after"] >= 1
        assert flooded["most_unanswered"] == FLOODED_AT
        assert flooded["requests"] <= flooded["flooded_after"] / parallel.WAITS + 1

    def test_one_that_ends(self, records: list[store.Record]) -> None:
        failures = [record for record in records if record["record"] == "failure"]
        assert [failure["server"] for failure in failures] == ["ends", "ends"]


class TestReport:
    def test_who_was_flooded(self, records: list[store.Record]) -> None:
        sections = parallel.STUDY.report(Results(records).experiment("parallel"))
        parts = [part for section in sections for part in section.parts]
        tables = {part.name: part for part in parts if isinstance(part, Table)}
        assert list(tables) == ["parallel-light", "parallel-slow", "parallel-2010"]
        slow = tables["parallel-slow"]
        place = [column.name for column in slow.columns].index("600 unanswered")
        cells = {row[0]: str(row[place]) for row in slow.rows}
        assert cells[SINGLE].startswith("after ")
        assert cells[THREADING] == "not in 1.5 s" or cells[THREADING].startswith("after ")
        assert any("were unanswered at poorhttp single (after" in one.answer for one in sections)
