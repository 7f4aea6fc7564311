"""The study `overload`: what is counted, a small run against real servers, and its report."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import replace

import pytest

from loadtests import store
from loadtests.clients.load import KINDS
from loadtests.clients.native.fetch import Trace
from loadtests.reporting.model import Panels
from loadtests.stats.results import Results, Spread
from loadtests.studies import overload
from tests.lab.studies.small_run import chosen, run, tables

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
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    """A tiny run of one handler, in which one server ends at once."""
    servers = chosen(overload.STUDY, *NAMES)
    ends = replace(servers[0], name="ends", command="{python} -c raise~SystemExit(3)")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(overload, "OVERLOADED", [*servers, ends])
        patched.setattr(overload, "HANDLERS", overload.HANDLERS[:1])
        yield run(overload.STUDY, tmp_path_factory.mktemp("overload"), [*servers, ends])


def test_each_handler_and_multiple(results: Results) -> None:
    open_ones = [one for one in results.samples if one["experiment"] == overload.NAME]
    assert {(one["server"], one["handler"], one["factor"]) for one in open_ones} == {
        (name, handler.name, factor)
        for name in NAMES
        for handler in overload.HANDLERS
        for factor in FACTORS
    }
    for one in open_ones:
        assert one["asked"] == sum(one[kind] for kind in ("requests", "refused", "left", "failed"))
        assert one["failed"] == 0
    [beside] = [one for one in results.samples if one["experiment"] == overload.FAIR]
    assert beside["server"] == NAMES[0]
    assert beside["requests"] > 0
    assert beside["errors"] == {}
    assert [one["server"] for one in results.failures] == ["ends"] * len(overload.HANDLERS)


def test_report(results: Results) -> None:
    sections = overload.report(results)
    assert len(sections) == len(overload.HANDLERS) + 1
    handlers = [f"overload-{handler.name}" for handler in overload.HANDLERS]
    found = tables(sections)
    assert list(found) == [*handlers, overload.FAIR]
    for name in handlers:
        assert {row[0] for row in found[name].rows} == set(NAMES)
        place = [column.name for column in found[name].columns].index("in time at 0.8 ×")
        for row in found[name].rows:
            share = row[place]
            assert isinstance(share, Spread)
            assert 0 < share.median <= 1
    figures = [part.name for one in sections for part in one.parts if isinstance(part, Panels)]
    assert figures == [f"{name}-figure" for name in handlers]
    assert all(section.answer for section in sections)
