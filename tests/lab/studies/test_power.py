"""The study `power`: phases and regression lines of known values, and a small run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loadtests.measure import histogram
from loadtests.studies import power as steps
from loadtests.studies.power import STUDY, Injector, counts, fit, phases
from tests.lab.studies.small_run import chosen, run, tables

FIRST = Injector(0.0, 3.0, [0.5, 1.0, 2.0, 3.0], [10, 20, 30, 40])
SECOND = Injector(1.0, 4.0, [1.5, 3.5, 4.0], [50, 5, 60])


def test_phases() -> None:
    assert phases([FIRST, SECOND]) == [
        ([1], 1.0, 2, 10, 20),
        ([1, 2], 2.0, 3, 30, 50),
        ([2], 1.0, 2, 5, 60),
    ]
    late = Injector(5.0, 6.0, [6.0], [7])
    assert phases([FIRST, late]) == [
        ([1], 3.0, 4, 10, 40),
        ([2], 1.0, 1, 7, 7),
    ]


def test_counts() -> None:
    assert counts(FIRST, 4, 4.0) == [1, 1, 1, 1]
    assert counts(SECOND, 4, 4.0) == [0, 1, 0, 2]
    assert sum(counts(SECOND, 7, 4.0)) == 3


def test_fit() -> None:
    found = fit([(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)])
    assert found == pytest.approx((2.0, 1.0, 1.0))
    # Worked out by hand: the means are 2 and 2, sums of squares 2, 2 and of products 1.
    assert fit([(1.0, 2.0), (2.0, 1.0), (3.0, 3.0)]) == pytest.approx((0.5, 1.0, 0.25))
    assert fit([(1.0, 2.0), (2.0, 1.0)]) is None
    assert fit([(1.0, 2.0), (1.0, 1.0), (1.0, 5.0)]) is None


def asked(*numbers: int, by: str = steps.OWN) -> dict[str, Any]:
    """The options for so many injectors, of a kind."""
    return {"injectors": list(numbers), "by": by, "requests": None, "servers": None}


def test_injectors(tmp_path: Path) -> None:
    servers = chosen(STUDY, "poorhttp single", "poorhttp threading 8")
    results = run(STUDY, tmp_path, servers, **asked(1, 2, 5))
    assert not results.failures
    samples = results.samples
    assert len(samples) == 8
    for sample in samples:
        assert sample["requests"] == steps.FEWEST * sample["injectors"]
        assert 0 < sample["low_us"] <= sample["high_us"] <= sample["seconds"] * 1e6 * 1.01
        assert histogram.merge([sample["times"]]).get_total_count() == sample["requests"]
        assert sample["server_busy"] > 0
        if sample["scenario"] == "in turn":
            assert sum(map(sum, sample["counts"])) == sample["requests"]
            assert sum(phase[2] for phase in sample["phases"]) == sample["requests"]
            lasted = sum(phase[1] for phase in sample["phases"])
            assert lasted <= sample["seconds"] + 1e-4
            assert sample["began"] == sorted(sample["began"])
    sections = STUDY.report(results)
    found = tables(sections)
    rows = [(row[0], row[1]) for row in found["power-injectors"].rows]
    assert len(rows) == 6
    assert set(rows) == {(server.name, count) for server in servers for count in (1, 2, 5)}
    assert all(section.answer for section in sections[:2])
    assert len(found["power-linearity"].rows) == 2
    assert len(found["power-2005-injectors"].rows) == 8
    text = " ".join(line for section in sections for line in section.text)
    assert "1, 2, 5 injectors" in text
