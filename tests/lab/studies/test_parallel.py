"""The study `parallel`: overload, a small run against real servers, and its report."""

from __future__ import annotations

from argparse import Namespace
from array import array
from dataclasses import replace
from pathlib import Path

import pytest

from loadtests.clients.native.fetch import Trace
from loadtests.servers.registry import given
from loadtests.stats.results import Results
from loadtests.studies import parallel
from loadtests.studies.originals import AT_ONCE
from loadtests.studies.study import TINY
from tests.lab.studies.small_run import chosen, lab, run, tables

SINGLE, THREADING = "poorhttp single", "poorhttp threading 8"
FLOODED_AT = AT_ONCE + AT_ONCE // 2


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A tiny run: one that is flooded, one that is not, and one that never answers."""
    servers = chosen(parallel.STUDY, SINGLE, THREADING)
    ends = replace(servers[0], name="ends", command="{python} -c raise~SystemExit(3)")
    folder = tmp_path_factory.mktemp("parallel")
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(parallel.LIMITS, "most_unanswered", FLOODED_AT)
        everyone = [*servers, ends]
        return run(parallel.STUDY, folder, everyone, servers=["some"], parallel_seconds=None)


def _trace(*requests: tuple[int, int]) -> Trace:
    """Requests that should have been made, and ended, at these milliseconds."""
    numbers = array("Q")
    for intended, ended in requests:
        times = [time * 1000 for time in (intended, intended, intended, ended, ended)]
        numbers.extend([*times, 100, 200, 0, 0])
    return Trace(numbers, began=0, seconds=1, stopped=False)


@pytest.mark.parametrize(
    ("requests", "most"),
    [
        ([(0, 100), (0, 2500), (1000, 1100), (1000, 1200), (2000, 2100)], [2, 3, 2]),
        # Who is over makes room before the next comes.
        ([(0, 1000), (1000, 1500)], [1, 1]),
        # Seconds in which nothing happens.
        ([(0, 3500), (0, 3600)], [2, 2, 2, 2]),
    ],
)
def test_unanswered_in_each_second(requests: list[tuple[int, int]], most: list[int]) -> None:
    assert parallel.unanswered(_trace(*requests)) == most


def test_who_answers_for_himself_is_asked_for_his_own_page(tmp_path: Path) -> None:
    """By every handler: the one that waits is an application of ours."""
    own = given.command("mine=python3 -m http.server {port}")
    with lab(tmp_path) as small:
        options = Namespace(servers=["mine"], parallel_seconds=None)
        planned = parallel.STUDY.plan(small, TINY, [own], options)
    assert [step.server.own for step in planned] == [True, True]


def test_counts(results: Results) -> None:
    samples = {(one["scenario"], one["server"]): one for one in results.samples}
    assert set(samples) == {
        (handler, server) for handler in ("light", "slow") for server in (SINGLE, THREADING)
    }
    for one in samples.values():
        assert one["requests"] + one["failed"] == one["asked"]
        assert one["asked"] % AT_ONCE == 0 or one["flooded_after"]
        assert max(one["unanswered"]) == one["most_unanswered"] <= FLOODED_AT
        assert 0 < one["answer_us"] <= one["mean_us"] <= one["max_us"]
        assert one["rate"] * one["seconds"] == pytest.approx(one["requests"])
    # Who does one thing at a time is flooded by the second hundred, which comes after a second.
    flooded = samples["slow", SINGLE]
    assert flooded["flooded_after"] >= 1
    assert flooded["most_unanswered"] == FLOODED_AT
    assert flooded["requests"] <= flooded["flooded_after"] / parallel.WAITS + 1
    assert [failure["server"] for failure in results.failures] == ["ends", "ends"]


def test_who_was_flooded(results: Results) -> None:
    sections = parallel.STUDY.report(results)
    found = tables(sections)
    assert list(found) == ["parallel-light", "parallel-slow", "parallel-2010"]
    slow = found["parallel-slow"]
    place = [column.name for column in slow.columns].index("600 unanswered")
    cells = {row[0]: str(row[place]) for row in slow.rows}
    assert cells[SINGLE].startswith("after ")
    assert cells[THREADING] == "not in 1.5 s" or cells[THREADING].startswith("after ")
    assert any("were unanswered at poorhttp single (after" in one.answer for one in sections)
