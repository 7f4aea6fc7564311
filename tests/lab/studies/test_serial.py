"""The study `serial`: a small run against real servers, and its report."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadtests import store
from loadtests.errors import LabError
from loadtests.measure import histogram
from loadtests.measure.cpu_affinity import cores
from loadtests.reporting.model import Table
from loadtests.servers.registry import Server, missing
from loadtests.stats.results import Results, Spread
from loadtests.studies import engine, sample, tables
from loadtests.studies.serial import study as serial
from loadtests.studies.study import TINY

NAMES = ("poorhttp single", "poorhttp threading 8", "lighttpd + single")


def _chosen(*names: str) -> list[Server]:
    chosen = [one for one in serial.STUDY.servers() if one.name in names]
    if reason := next(filter(None, map(missing, chosen)), ""):
        pytest.skip(reason)
    return chosen


def _run(path: Path, chosen: Sequence[Server]) -> list[store.Record]:
    """The records of a tiny run."""
    writing = store.Store(path / "results.jsonl", "now")
    lab = engine.Lab(writing, TINY.seconds, TINY.rounds, *cores())
    try:
        engine.run(lab, serial.STUDY.plan(lab, TINY, chosen, Namespace()), "test", study="serial")
    finally:
        writing.close()
    return writing.records


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[store.Record]:
    """A run of some servers, one of which ends at once."""
    chosen = _chosen(*NAMES)
    hanging = replace(chosen[0], name="ends", command="{python} -c raise~SystemExit(3)")
    return _run(tmp_path_factory.mktemp("serial"), [*chosen, hanging])


@pytest.fixture
def samples(records: list[store.Record]) -> list[dict[str, Any]]:
    """What was measured."""
    return [record for record in records if record["record"] == "sample"]


class TestRun:
    def test_every_server_and_page_once(self, samples: list[dict[str, Any]]) -> None:
        found = sorted((one["server"], one["scenario"]) for one in samples)
        names = [server.name for server in _chosen(*NAMES)]
        assert found == sorted((name, page) for name in names for page in ("light", "heavy"))

    def test_counts(self, samples: list[dict[str, Any]]) -> None:
        for one in samples:
            assert one["requests"] + one["failed"] == serial.FEWEST
            assert one["failed"] == sum(one["errors"].values())

    def test_times(self, samples: list[dict[str, Any]]) -> None:
        for one in samples:
            assert 0 < one["answer_us"] <= one["mean_us"] <= one["max_us"]
            assert one["p50_us"] <= one["p99_us"] <= one["max_us"]
            # One after the other: they fit into the time of the test.
            assert one["mean_us"] * one["requests"] <= one["seconds"] * 1e6 * (1 + 1e-9)
            assert one["rate"] == pytest.approx(one["requests"] / one["seconds"])
            assert one["cpu_us"] > 0
            # With the client's start, which may be longer than the few requests of this test.
            assert one["client_busy"] > 0

    def test_histograms(self, samples: list[dict[str, Any]]) -> None:
        for one in samples:
            pages = histogram.merge([one["page_times"]])
            assert pages.get_total_count() == one["requests"]
            quantiles = [histogram.quantile(pages, share) for share in (0, 0.5, 0.9, 0.99, 1)]
            assert quantiles == sorted(quantiles)

    def test_one_that_ends(self, records: list[store.Record]) -> None:
        [failure] = [record for record in records if record["record"] == "failure"]
        assert failure["server"] == "ends"
        assert "exit code 3" in failure["reason"]

    @pytest.mark.parametrize("then", ["", ";import~time;time.sleep(60)"], ids=["dies", "hangs"])
    def test_one_that_answers_a_few(
        self, then: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(serial, "LONGEST", 0.3)
        monkeypatch.setattr(serial, "PATIENCE", 0.1)
        monkeypatch.setattr(sample, "WARM_SECONDS", 0.5)
        chosen = _chosen("poorhttp single")
        [wsgiref] = _chosen("wsgiref")
        command = wsgiref.command.replace("s.make_server", "server=s.make_server")
        few = f";[server.handle_request()~for~number~in~range(40)]{then}"
        command = command.replace(".serve_forever()", few)
        records = _run(tmp_path, [replace(wsgiref, name="few", command=command), *chosen])
        [failure] = [record for record in records if record["record"] == "failure"]
        assert failure["server"] == "few"
        # One that dies may not be quite gone when nothing is answered any more.
        assert re.search("it died|no request was answered", failure["reason"])
        assert {one["server"] for one in records if one["record"] == "sample"} == {chosen[0].name}

    def test_nobody_at_all(self, tmp_path: Path) -> None:
        ends = replace(
            serial.STUDY.servers()[0], name="ends", command="{python} -c raise~SystemExit(3)"
        )
        with pytest.raises(LabError, match="nothing could be measured"):
            _run(tmp_path, [ends])


class TestReport:
    def test_tables(self, records: list[store.Record]) -> None:
        sections = serial.STUDY.report(Results(records).experiment("serial"))
        parts = [part for section in sections for part in section.parts]
        found = {part.name: part for part in parts if isinstance(part, Table)}
        assert list(found) == ["serial-light", "serial-heavy", "serial-2010"]
        light = found["serial-light"]
        assert {row[0] for row in light.rows} == {server.name for server in _chosen(*NAMES)}
        times = [row[1].median for row in light.rows if isinstance(row[1], Spread)]
        assert len(times) == len(light.rows)
        assert times == sorted(times)
        assert light.ranking == light.columns[1].name
        assert all(section.answer for section in sections[:-1])
        assert all(len(row) == len(light.columns) for row in light.rows)
        assert {row[0] for row in light.rows} <= light.strong
        assert found["serial-2010"].rows[0][:4] == ("Single", 183.02, 110.85, 80.49)

    def test_per_second_is_of_the_mean_time(self) -> None:
        one = {
            "record": "sample",
            "run": "now",
            "experiment": "serial",
            "scenario": "light",
            "server": "a",
            "round": 0,
            "mean_us": 9000.0,
            "errors": {"read": 2},
            "requests": 3,
            "failed": 2,
        }
        found = tables.cell([one], serial.WHOLE)
        assert isinstance(found, Spread)
        # The res/s of Single, from its res t.
        assert round(found.median) == 111
        [said] = tables.failed([one], "light")
        assert said == "a, light: 2 of 5 requests failed (2 read)."

    def test_nothing_measured(self) -> None:
        [section] = serial.STUDY.report(Results([]))
        [table] = section.parts
        assert isinstance(table, Table)
        assert table.name == "serial-2010"
