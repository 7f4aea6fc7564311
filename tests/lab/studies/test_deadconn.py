"""The study `deadconn`: its report, its servers' limits, and a small run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loadtests.studies import deadconn
from loadtests.studies.study import TINY
from tests.lab.studies.small_run import chosen, run
from tests.packages import need


# A fifth of a second each: on a busy machine, nothing is answered in it.
def test_a_small_run(tmp_path: Path) -> None:
    need("wrk")
    servers = chosen(deadconn.STUDY, "poorhttp single")
    results = run(deadconn.STUDY, tmp_path, servers)
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


@pytest.mark.full
def test_a_server_that_takes_too_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers alone; beside the dead it is told that it did not take them."""
    monkeypatch.setattr(deadconn, "ACCEPT_SECONDS", 0.5)
    need("wrk")
    (server,) = chosen(deadconn.STUDY, "poorhttp single")
    narrow = replace(server, command=f"{server.command} --max-connections 100")
    results = run(deadconn.STUDY, tmp_path, [narrow])
    assert {one["dead"] for one in results.samples} == {0}
    (ended,) = results.failures
    assert ended["dead"] == deadconn.LEVELS[TINY.name][-1]
    assert "of 200 dead connections" in ended["reason"]
