"""The study `power`: phases and regression lines of known values, and a small run."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadtests import store
from loadtests.clients.locust import swarm
from loadtests.errors import LabError
from loadtests.measure import histogram
from loadtests.servers.registry import Server
from loadtests.stats.results import Results
from loadtests.studies.power import study as steps
from loadtests.studies.power.injectors import Injected, Injector, Order, counts, phases
from loadtests.studies.power.report import fit
from loadtests.studies.power.study import STUDY
from tests.lab.studies.small_run import chosen, failures, run, tables

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


def asked(*numbers: int, by: str = steps.OWN) -> dict[str, object]:
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
    for table in found.values():
        assert all(len(row) == len(table.columns) for row in table.rows)
    text = " ".join(line for section in sections for line in section.text)
    assert "1, 2, 5 injectors" in text


def test_workers_of_locust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason := swarm.missing():
        pytest.skip(reason)
    runs: list[Injected] = []
    workers = steps.INJECTORS[steps.LOCUST]

    def seen(order: Order) -> Injected:
        runs.append(workers(order))
        return runs[-1]

    monkeypatch.setitem(steps.INJECTORS, steps.LOCUST, seen)
    servers = chosen(STUDY, "poorhttp single")
    results = run(STUDY, tmp_path, servers, **asked(2, by=steps.LOCUST))
    assert not results.failures
    in_turn, at_once = results.samples
    assert in_turn["requests"] == 3 * steps.FEWEST
    assert sum(phase[2] for phase in in_turn["phases"]) == in_turn["requests"]
    first, second, third = in_turn["began"]
    assert first == 0
    assert third > second > first
    assert in_turn["stagger_seconds"] == pytest.approx(steps.FEWEST * steps.APART)
    assert at_once["requests"] == 2 * steps.FEWEST
    assert [len(injected.injectors) for injected in runs] == [3, 2]
    for injected, sample in zip(runs, (in_turn, at_once), strict=True):
        assert injected.busy > 0
        assert histogram.merge([sample["times"]]).get_total_count() == sample["requests"]
        for one in injected.injectors:
            assert 0 <= one.began < one.ended <= injected.seconds
            assert len(one.ends) == len(one.times) == steps.FEWEST
            assert one.ends == sorted(one.ends)
            assert one.ends[-1] == one.ended
    for one, slices in zip(runs[0].injectors, in_turn["counts"], strict=True):
        assert sum(slices) == steps.FEWEST
        before = int(one.began / in_turn["bin_seconds"])
        assert slices[:before] == [0] * before
    text = " ".join(line for section in STUDY.report(results) for line in section.text)
    assert "They are workers of Locust" in text


def test_without_locust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swarm, "version", lambda: "")
    with pytest.raises(LabError, match="nothing could be measured"):
        run(STUDY, tmp_path, chosen(STUDY, "poorhttp single"), **asked(2, by=steps.LOCUST))
    results = Results(store.load([tmp_path / "results.jsonl"]))
    assert [one["reason"] for one in results.failures] == [swarm.missing()] * 2


DYING = """\
import http.server, os, sys
asked = 0
class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        global asked
        asked += 1
        if asked > 60:
            os._exit(3)
        super().do_GET()
    def log_message(self, *words):
        pass
os.chdir(sys.argv[2])
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def test_a_server_that_dies_is_told(tmp_path: Path) -> None:
    (tmp_path / "dying.py").write_text(DYING)
    dying = Server("dying", "#000000", f"{{python}} {tmp_path}/dying.py {{port}} {{root}}")
    results = run(STUDY, tmp_path, [dying, *chosen(STUDY, "poorhttp single")], **asked(2))
    assert failures(results) == {"dying"}
    assert len(results.failures) == len(results.samples) == 2
    text = [line for section in STUDY.report(results) for line in section.text]
    assert any(line.startswith("Failed: power, 2 injectors, round 1, dying: ") for line in text)
