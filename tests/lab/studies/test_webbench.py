"""The study `webbench`: its files, counts, settings, and a small run."""

from __future__ import annotations

import argparse
from array import array
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from loadtests.clients.native.fetch import Trace
from loadtests.measure import histogram
from loadtests.studies import originals, webbench
from tests.lab.studies.small_run import chosen, failures, run, tables


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    webbench.arguments(parser)
    return parser.parse_args(arguments)


CLASSES = webbench.files()


class TestFiles:
    def test_an_answer_is_as_long_as_in_2001(self) -> None:
        """Its bytes per second over its requests per second, less a head of some 250 octets."""
        octets = sum(map(sum, originals.THROUGHPUT))
        requests = sum(map(sum, originals.RPS))
        assert webbench.mean_answer() == pytest.approx(octets / requests - 250, rel=0.02)

    def test_requests_are_drawn_by_class(self) -> None:
        targets = webbench.asked()
        assert targets == webbench.asked()
        kinds = {target: kind.name for kind, own in CLASSES.items() for target in own}
        found = Counter(kinds[target] for target in targets)
        assert sum(kind.probability for kind in webbench.CLASSES) == pytest.approx(1)
        for kind in webbench.CLASSES:
            assert found[kind.name] / len(targets) == pytest.approx(kind.probability, abs=0.01)


class TestPhases:
    def test_an_answer_belongs_to_where_it_ended(self) -> None:
        """Of a run of 1 + 2 + 1 s; the last counts nowhere, nor does one that failed."""
        rows = []
        for ended, kind in ((0.5, 0), (1.0, 0), (2.9, 0), (2.95, 2), (3.0, 0), (3.9, 0), (4.0, 0)):
            end = round(ended * 1e6)
            rows += [end - 1_000, end - 1_000, end - 900, end - 500, end, 100, 200, kind, 0]
        trace = Trace(array("Q", rows), began=0.0, seconds=4.0, stopped=False)
        found = webbench.phases(trace, webbench.Settings(2.0, 1.0))
        ends = [[trace.ended[row] / 1e6 for row in rows] for rows in found]
        assert ends == [[0.5], [1.0, 2.9], [3.0, 3.9]]


def test_a_small_run(tmp_path: Path) -> None:
    name = "poorhttp single"
    servers = chosen(webbench.STUDY, name)
    dead = replace(servers[0], name="dead", command="{python} -c import~sys;sys.exit(3)")
    results = run(webbench.STUDY, tmp_path, [dead, *servers], **vars(options("--http", "1.0")))
    assert failures(results) == {"dead"}
    assert [one["server"] for one in results.samples] == [name]
    for one in results.samples:
        assert one["errors"] == {}
        assert one["requests"] == histogram.merge([one["times"]]).get_total_count()
        # Files of all classes have come: at least a byte each, and heads.
        assert 200 < one["octets"] / one["requests"] < 102_400
        assert 0 < one["p50_us"] <= one["p99_us"] <= one["max_us"]
        assert one["rate"] * one["seconds"] == pytest.approx(one["requests"], abs=1)
    told = webbench.STUDY.report(results)
    found = tables(told)
    assert [row[0] for row in found["webbench"].rows] == [name]
    assert found["webbench-classes"].rows[-1][1:3] == [6_471.0, 67_108_864.0]
    assert found["webbench-settings"].rows[-1][2] == "HTTP 1.0"
    text = " ".join(told[0].text)
    assert "not public" in text
    assert "exit code 3" in text
