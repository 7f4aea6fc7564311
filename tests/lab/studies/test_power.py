"""The study `power`: phases and regression lines of known values, and a small run."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from loadtests import store
from loadtests.clients.locust import swarm
from loadtests.errors import LabError
from loadtests.measure import histogram
from loadtests.reporting.model import Table
from loadtests.servers.registry import Server
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import engine
from loadtests.studies.engine import Lab
from loadtests.studies.power import study as steps
from loadtests.studies.power.injectors import Injected, Injector, Order, counts, phases
from loadtests.studies.power.report import fit
from loadtests.studies.power.study import STUDY
from loadtests.studies.study import FULL, TINY

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


def measured(path: Path, servers: list[Server], *numbers: int, by: str = steps.OWN) -> list[Record]:
    results = store.Store(path / "results.jsonl", "run")
    lab = Lab(results, TINY.seconds, TINY.rounds, None, None)
    options = argparse.Namespace(injectors=list(numbers), by=by, requests=None, servers=None)
    try:
        planned = STUDY.plan(lab, TINY, servers, options)
        engine.run(lab, planned, "power", study=STUDY.name)
    finally:
        results.close()
    return store.load([path / "results.jsonl"])


def named(*names: str) -> list[Server]:
    return [server for server in STUDY.servers() if server.name in names]


def test_injectors(tmp_path: Path) -> None:
    servers = named("poorhttp single", "poorhttp threading 8")
    records = measured(tmp_path, servers, 1, 2, 5)
    assert not [record for record in records if record["record"] == "failure"]
    samples = Results(records).samples
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
    sections = STUDY.report(Results(records).experiment(STUDY.name))
    parts = [part for section in sections for part in section.parts]
    tables = {part.name: part for part in parts if isinstance(part, Table)}
    rows = [(row[0], row[1]) for row in tables["power-injectors"].rows]
    assert len(rows) == 6
    assert set(rows) == {(server.name, count) for server in servers for count in (1, 2, 5)}
    assert all(section.answer for section in sections[:2])
    assert len(tables["power-linearity"].rows) == 2
    assert len(tables["power-2005-injectors"].rows) == 8
    for table in tables.values():
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
    records = measured(tmp_path, named("poorhttp single"), 2, by=steps.LOCUST)
    failures = [record["reason"] for record in records if record["record"] == "failure"]
    assert not failures
    in_turn, at_once = Results(records).samples
    assert in_turn["requests"] == 3 * steps.FEWEST
    assert sum(phase[2] for phase in in_turn["phases"]) == in_turn["requests"]
    first, second, third = in_turn["began"]
    assert first == 0
    assert third > second > first
    assert in_turn["stagger_seconds"] == pytest.approx(steps.FEWEST * steps.APART)
    assert at_once["requests"] == 2 * steps.FEWEST
    assert [len(run.injectors) for run in runs] == [3, 2]
    for run, sample in zip(runs, (in_turn, at_once), strict=True):
        assert run.busy > 0
        assert histogram.merge([sample["times"]]).get_total_count() == sample["requests"]
        for one in run.injectors:
            assert 0 <= one.began < one.ended <= run.seconds
            assert len(one.ends) == len(one.times) == steps.FEWEST
            assert one.ends == sorted(one.ends)
            assert one.ends[-1] == one.ended
    for one, slices in zip(runs[0].injectors, in_turn["counts"], strict=True):
        assert sum(slices) == steps.FEWEST
        before = int(one.began / in_turn["bin_seconds"])
        assert slices[:before] == [0] * before
    text = " ".join(line for section in STUDY.report(Results(records)) for line in section.text)
    assert "They are workers of Locust" in text


def test_without_locust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swarm, "version", lambda: "")
    with pytest.raises(LabError, match="nothing could be measured"):
        measured(tmp_path, named("poorhttp single"), 2, by=steps.LOCUST)
    records = store.load([tmp_path / "results.jsonl"])
    failures = [record["reason"] for record in records if record["record"] == "failure"]
    assert failures == [swarm.missing()] * 2


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
    records = measured(tmp_path, [dying, *named("poorhttp single")], 2)
    failures = [record for record in records if record["record"] == "failure"]
    assert {failure["server"] for failure in failures} == {"dying"}
    assert len(failures) == 2
    assert len(Results(records).samples) == 2
    text = [line for section in STUDY.report(Results(records)) for line in section.text]
    assert any(line.startswith("Failed: power, 2 injectors, round 1, dying: ") for line in text)


def test_full_does_what_the_document_did() -> None:
    assert steps.REQUESTS[steps.OWN] * FULL.share == 5_000
    assert steps.LEVELS == (1, 2, 3, 4, 5, 6, 9, 12)
