"""The study `overload`: what is counted, a small run against real servers, and its report."""

from __future__ import annotations

from argparse import Namespace
from array import array
from collections.abc import Iterator
from dataclasses import replace

import pytest

from loadtests import store
from loadtests.clients.load import KINDS
from loadtests.clients.native.fetch import Trace
from loadtests.measure.cpu_affinity import cores
from loadtests.reporting.model import Panels, Table
from loadtests.servers.registry import missing
from loadtests.stats.results import Results, Spread
from loadtests.studies import engine, overload
from loadtests.studies.study import TINY

#: One that takes part in both experiments.
NAMES = ("poorhttp threading 8",)
FACTORS = (0.8, 2.0)


def _trace(*requests: tuple[int, int, str, int]) -> Trace:
    """Requests with their intended time, their end (milliseconds), kind of failure, and status."""
    numbers = array("Q")
    for intended, ended, kind, status in requests:
        times = [time * 1000 for time in (intended, intended, intended, ended, ended)]
        numbers.extend([*times, 100, status, KINDS.index(kind), 0])
    return Trace(numbers, began=0, seconds=1, stopped=False)


def test_what_is_counted() -> None:
    trace = _trace(
        (0, 5, "", 200),
        (1000, 1010, "", 200),
        (1100, 1130, "", 200),
        (1200, 2300, "", 200),
        (1300, 2300, "timeout", 0),
        (1400, 1401, "status", 503),
        (1500, 1501, "status", 500),
        (1600, 1601, "connect", 0),
    )
    assert overload.counted(trace, 1.0) == {
        "asked": 7,
        "requests": 2,
        "left": 2,
        "refused": 1,
        "failed": 2,
        "errors": {"failed": 2},
        "p99_us": 10_000,
    }
    assert "p99_us" not in overload.counted(trace, 1.15)


def test_shares_are_of_the_highest_rate() -> None:
    def sample(factor: float, rate: float) -> store.Record:
        place = {"run": "now", "server": "one", "handler": "light", "round": 0}
        return {**place, "factor": factor, "capacity": 100, "rate": rate, "offered": 100 * factor}

    found = overload.of_highest([sample(0.8, 80), sample(1.5, 125), sample(5, 50)])
    assert [one["share"] for one in found] == [0.64, 1, 0.4]
    assert [one["offered"] for one in found] == [0.64, 1.2, 4]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[store.Record]]:
    """A tiny run of one handler, in which one server ends at once."""
    chosen = [one for one in overload.servers() if one.name in NAMES]
    assert not any(map(missing, chosen))
    writing = store.Store(tmp_path_factory.mktemp("overload") / "results.jsonl", "now")
    lab = engine.Lab(writing, TINY.seconds, TINY.rounds, *cores())
    scale = next(one for one in overload.SCALES if one.name == TINY.name)
    options = Namespace(names=overload.STUDY.experiments)
    with pytest.MonkeyPatch.context() as patched:
        ends = replace(chosen[0], name="ends", command="{python} -c raise~SystemExit(3)")
        patched.setattr(overload, "OVERLOADED", [*chosen, ends])
        patched.setattr(overload, "HANDLERS", overload.HANDLERS[:1])
        planned = overload.plan(lab, scale, [*chosen, ends], options)
        engine.run(lab, planned, "test", study=overload.NAME)
        writing.close()
        yield writing.records


class TestRun:
    def test_each_handler_and_multiple(self, records: list[store.Record]) -> None:
        samples = [one for one in records if one["record"] == "sample"]
        open_ones = [one for one in samples if one["experiment"] == overload.NAME]
        assert {(one["server"], one["handler"], one["factor"]) for one in open_ones} == {
            (name, handler.name, factor)
            for name in NAMES
            for handler in overload.HANDLERS
            for factor in FACTORS
        }
        for one in open_ones:
            assert one["asked"] == sum(
                one[kind] for kind in ("requests", "refused", "left", "failed")
            )
            assert one["failed"] == 0
        [beside] = [one for one in samples if one["experiment"] == overload.FAIR]
        assert beside["server"] == NAMES[0]
        assert beside["requests"] > 0
        assert beside["errors"] == {}

    def test_one_that_ends(self, records: list[store.Record]) -> None:
        failures = [one for one in records if one["record"] == "failure"]
        assert [one["server"] for one in failures] == ["ends"] * len(overload.HANDLERS)

    def test_report(self, records: list[store.Record]) -> None:
        own = Results(records).of_study(overload.STUDY.name, overload.STUDY.experiments)
        sections = overload.report(own)
        assert len(sections) == len(overload.HANDLERS) + 1
        parts = [part for section in sections for part in section.parts]
        tables = [part for part in parts if isinstance(part, Table)]
        handlers = [f"overload-{handler.name}" for handler in overload.HANDLERS]
        assert [table.name for table in tables] == [*handlers, overload.FAIR]
        for table in tables[:-1]:
            assert {row[0] for row in table.rows} == set(NAMES)
            place = [column.name for column in table.columns].index("in time at 0.8 ×")
            for row in table.rows:
                share = row[place]
                assert isinstance(share, Spread)
                assert 0 < share.median <= 1
        figures = [part for part in parts if isinstance(part, Panels)]
        assert [figure.name for figure in figures] == [f"{name}-figure" for name in handlers]
        assert all(section.answer for section in sections)
