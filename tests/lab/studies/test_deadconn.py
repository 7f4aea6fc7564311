"""The study `deadconn`: its report, its servers' limits, and a small run."""

from __future__ import annotations

import argparse
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadtests import store
from loadtests.errors import LabError, ServerFailure
from loadtests.measure.cpu_affinity import cores
from loadtests.reporting.model import Panels, Table
from loadtests.servers.registry import Server, missing
from loadtests.servers.running import Running
from loadtests.stats.results import Results
from loadtests.studies import engine
from loadtests.studies.deadconn import study as deadconn
from loadtests.studies.study import FULL, QUICK, TINY
from tests.packages import need
from tests.testkit.server import wait_for


def sample(server: str, size: int, dead: int, rate: float, **more: Any) -> dict[str, Any]:
    return {
        "record": "sample",
        "run": "r",
        "experiment": deadconn.NAME,
        "scenario": f"document{size}-64, {dead:,} dead",
        "server": server,
        "round": 0,
        "size": size,
        "dead": dead,
        "requests": 100,
        "rate": rate,
        "mean_us": 1e6 / rate,
        "cpu_us": 1.0,
        "client_busy": 0.5,
        "errors": {},
        **more,
    }


def failure(server: str, dead: int, reason: str) -> dict[str, Any]:
    what = f"deadconn, round 1, {server}, {dead:,} dead"
    told = {"server": server, "what": what, "reason": reason, "study": "deadconn"}
    return {"record": "failure", "run": "r", "dead": dead, "round": 0, **told}


def chosen(*names: str) -> list[Server]:
    return [server for server in deadconn.servers() if server.name in names]


def run(path: Path, servers: list[Server]) -> Results:
    need("wrk")
    writing = store.Store(path, "r")
    lab = engine.Lab(writing, TINY.seconds, TINY.rounds, *cores())
    planned = deadconn.STUDY.plan(lab, TINY, servers, argparse.Namespace())
    try:
        engine.run(lab, planned, "t", study=deadconn.NAME)
    finally:
        writing.close()
    return Results(store.load([path])).experiment(deadconn.NAME)


def words(results: Results) -> str:
    told = deadconn.STUDY.report(results)[0]
    return " ".join([told.answer, *told.text])


class TestReport:
    results = Results(
        [
            sample("poorhttp single", 128, 0, 1_000),
            sample("poorhttp single", 128, 18_000, 990),
            sample("waitress 8 threads, poll", 128, 0, 1_000),
            sample("waitress 8 threads, poll", 128, 18_000, 100),
            sample(deadconn.SELECT, 128, 0, 1_000, client_busy=0.98),
            failure(deadconn.SELECT, 3_000, "it died, exit code 1: it said: ValueError"),
        ]
    )

    def test_who_suffers(self) -> None:
        told = words(self.results)
        assert "waitress 8 threads, poll keeps 10%" in told
        assert (
            "or what lies within the spread of the rounds: poorhttp single; of the others" in told
        )
        assert "poorhttp single keeps" not in told

    def test_what_lies_within_the_spread_is_no_finding(self) -> None:
        rates = ((0, 1_000), (0, 500), (18_000, 600), (18_000, 400))
        results = Results([sample("poorhttp single", 128, dead, rate) for dead, rate in rates])
        assert "poorhttp single keeps" not in words(results)

    def test_select_is_told_as_a_finding(self) -> None:
        told = words(self.results)
        assert "waits with select(), which has room for 1,024 descriptors" in told
        assert "cannot serve beside 3,000 dead" in told
        assert "Failed:" not in told

    def test_another_server_that_ends_is_not_excused(self) -> None:
        results = Results(
            [sample("nginx", 128, 0, 1_000), failure("nginx", 3_000, "it died, exit code 1")]
        )
        assert "select" not in words(results)
        parts = deadconn.STUDY.report(results)[0].parts
        (ends,) = [one for one in parts if isinstance(one, Table) and one.name == "deadconn-ends"]
        assert list(ends.rows[0]) == ["nginx", 1.0, 3_000.0, "it died, exit code 1"]

    def test_tables_and_figures(self) -> None:
        parts = deadconn.STUDY.report(self.results)[0].parts
        kept = next(one for one in parts if one.name == "deadconn-kept")
        assert isinstance(kept, Table)
        assert [row[2] for row in kept.rows] == [0.99, 0.1, None]
        figure = next(one for one in parts if one.name == "deadconn-rate-figure")
        assert isinstance(figure, Panels)
        assert figure.panels[0].lines[0].name == "poorhttp single"
        assert list(figure.panels[0].lines[0].points) == [(0.0, 1_000), (18_000.0, 990)]

    def test_the_client_was_the_limit(self) -> None:
        assert f"limit in samples with: {deadconn.SELECT}." in words(self.results)

    def test_no_results(self) -> None:
        assert deadconn.STUDY.report(Results([])) == []


def test_levels() -> None:
    assert [levels[0] for levels in deadconn.LEVELS.values()] == [0, 0, 0]
    assert set(deadconn.LEVELS) == {FULL.name, QUICK.name, TINY.name}
    assert deadconn.LEVELS[FULL.name][-1] == 18_000


def test_servers_may_hold_them() -> None:
    """Each is told to, where its default or our other studies keep it from that."""
    for server in deadconn.servers():
        told = server.command + "".join(text for _, text in server.files)
        assert "2048" not in told
        assert "--connection-limit 900" not in told
        if server.ours:
            assert "--header-timeout 3600" in told
        else:
            assert str(deadconn.MOST) in told


# A fifth of a second each: on a busy machine, nothing is answered in it.
def test_a_small_run(tmp_path: Path) -> None:
    servers = chosen("poorhttp single", "poorhttp forking 2", "lighttpd")
    if reason := next(filter(None, map(missing, servers)), ""):
        pytest.skip(reason)
    results = run(tmp_path / "r.jsonl", servers)
    assert results.failures == []
    seen = {(one["server"], one["size"], one["dead"]) for one in results.samples}
    assert seen == {
        (server.name, size, count)
        for server in servers
        for size in deadconn.SIZES
        for count in deadconn.LEVELS[TINY.name]
    }
    for one in results.samples:
        assert one["errors"] == {}
        assert one["octets"] >= one["requests"] * one["size"]
        assert 0 < one["p50_us"] <= one["p99_us"] <= one["max_us"]
        assert one["cpu_us"] > 0
    assert deadconn.STUDY.report(results)[0].parts


def test_a_server_that_takes_too_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers alone; beside the dead it is told that it did not take them."""
    monkeypatch.setattr(deadconn, "ACCEPT_SECONDS", 0.5)
    (server,) = chosen("poorhttp single")
    narrow = replace(server, command=f"{server.command} --max-connections 100")
    results = run(tmp_path / "r.jsonl", [narrow])
    assert {one["dead"] for one in results.samples} == {0}
    (ended,) = results.failures
    assert ended["dead"] == deadconn.LEVELS[TINY.name][-1]
    assert "of 200 dead connections" in ended["reason"]


def test_too_few_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def allow(count: int) -> None:
        if count > deadconn.ROOM:
            raise LabError(f"{count:,} open files are needed, and the hard limit is 512")

    monkeypatch.setattr(deadconn, "allow_files", allow)
    results = run(tmp_path / "r.jsonl", chosen("poorhttp single"))
    assert {one["dead"] for one in results.samples} == {0}
    assert "open files are needed" in results.failures[0]["reason"]


def test_a_server_that_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is its death, not that its clients were refused."""

    def refused(running: Running, files: int, count: int) -> None:
        os.kill(running.main, signal.SIGKILL)
        wait_for(lambda: running.main not in running.left(), "the end of the server")
        raise ServerFailure("connection refused")

    monkeypatch.setattr(deadconn, "_wait", refused)
    results = run(tmp_path / "r.jsonl", chosen("poorhttp single"))
    assert {one["dead"] for one in results.samples} == {0}
    assert "it died" in results.failures[0]["reason"]
