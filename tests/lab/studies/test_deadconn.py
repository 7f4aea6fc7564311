"""The study `deadconn`: its report, its servers' limits, and a small run."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from loadtests.errors import LabError, ServerFailure
from loadtests.servers.running import Running
from loadtests.studies.deadconn import study as deadconn
from loadtests.studies.study import FULL, QUICK, TINY
from tests.lab.studies.small_run import chosen, run
from tests.packages import need
from tests.testkit.server import wait_for


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
    need("wrk")
    servers = chosen(deadconn.STUDY, "poorhttp single", "lighttpd")
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


def test_too_few_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def allow(count: int) -> None:
        if count > deadconn.ROOM:
            raise LabError(f"{count:,} open files are needed, and the hard limit is 512")

    monkeypatch.setattr(deadconn, "allow_files", allow)
    need("wrk")
    results = run(deadconn.STUDY, tmp_path, chosen(deadconn.STUDY, "poorhttp single"))
    assert {one["dead"] for one in results.samples} == {0}
    assert "open files are needed" in results.failures[0]["reason"]


def test_a_server_that_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is its death, not that its clients were refused."""

    def refused(running: Running, files: int, count: int) -> None:
        os.kill(running.main, signal.SIGKILL)
        wait_for(lambda: running.main not in running.left(), "the end of the server")
        raise ServerFailure("connection refused")

    monkeypatch.setattr(deadconn, "_wait", refused)
    need("wrk")
    results = run(deadconn.STUDY, tmp_path, chosen(deadconn.STUDY, "poorhttp single"))
    assert {one["dead"] for one in results.samples} == {0}
    assert "it died" in results.failures[0]["reason"]
