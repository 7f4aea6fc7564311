"""The study `serial`: a small run against real servers, and its report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadtests.measure import histogram
from loadtests.stats.results import Results, Spread
from loadtests.studies import serial, tables
from tests.lab.studies import small_run
from tests.lab.studies.small_run import chosen, run

NAMES = ("poorhttp single", "lighttpd + single")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run of some servers, one of which ends at once."""
    servers = chosen(serial.STUDY, *NAMES)
    ending = replace(servers[0], name="ends", command="{python} -c raise~SystemExit(3)")
    return run(serial.STUDY, tmp_path_factory.mktemp("serial"), [*servers, ending])


def test_samples(results: Results) -> None:
    found = sorted((one["server"], one["scenario"]) for one in results.samples)
    assert found == sorted((name, page) for name in NAMES for page in ("light", "heavy"))
    for one in results.samples:
        assert one["requests"] + one["failed"] == serial.FEWEST
        assert one["failed"] == sum(one["errors"].values())
        assert 0 < one["answer_us"] <= one["mean_us"] <= one["max_us"]
        assert one["p50_us"] <= one["p99_us"] <= one["max_us"]
        # One after the other: they fit into the time of the test.
        assert one["mean_us"] * one["requests"] <= one["seconds"] * 1e6 * (1 + 1e-9)
        assert one["rate"] == pytest.approx(one["requests"] / one["seconds"])
        assert one["cpu_us"] > 0
        # With the client's start, which may be longer than the few requests of this test.
        assert one["client_busy"] > 0
        pages = histogram.merge([one["page_times"]])
        assert pages.get_total_count() == one["requests"]
        quantiles = [histogram.quantile(pages, share) for share in (0, 0.5, 0.9, 0.99, 1)]
        assert quantiles == sorted(quantiles)


def test_one_that_ends(results: Results) -> None:
    [failure] = results.failures
    assert failure["server"] == "ends"
    assert "exit code 3" in failure["reason"]


def test_report(results: Results) -> None:
    sections = serial.STUDY.report(results)
    found = small_run.tables(sections)
    assert list(found) == ["serial-light", "serial-heavy", "serial-2010"]
    names = [part.name for section in sections for part in section.parts]
    assert {"serial-light-percentiles", "serial-heavy-percentiles"} <= set(names)
    light = found["serial-light"]
    assert {row[0] for row in light.rows} == set(NAMES) <= light.strong
    times = [row[1].median for row in light.rows if isinstance(row[1], Spread)]
    assert len(times) == len(light.rows)
    assert times == sorted(times)
    assert light.ranking == light.columns[1].name
    assert all(section.answer for section in sections[:-1])
    assert found["serial-2010"].rows[0][:4] == ("Single", 183.02, 110.85, 80.49)


def test_per_second_is_of_the_mean_time() -> None:
    counts = {"errors": {"read": 2}, "requests": 3, "failed": 2}
    one = {"record": "sample", "run": "now", "server": "a", "mean_us": 9000.0, **counts}
    found = tables.cell([one], serial.WHOLE)
    assert isinstance(found, Spread)
    # The res/s of Single, from its res t.
    assert round(found.median) == 111
    [said] = tables.failed([one], "light")
    assert said == "a, light: 2 of 5 requests failed (2 read)."
