"""Delays between restarts of workers that end early, on a simulated clock."""

from __future__ import annotations

import os
import signal
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from poorhttp import logs
from poorhttp.process import signals
from poorhttp.supervisor.backoff import LOGGED, LONGEST_PAUSE, PAUSE, Backoff
from poorhttp.supervisor.worker_pool import WorkerPool
from tests.testkit.process import children
from tests.testkit.server import wait_for
from tests.testkit.versions import Versions, told

#: One every half minute.
WEEK = 7 * 24 * 3600 // 30


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_the_pause_of_5000_failures(clock: list[float]) -> None:
    pauses = []
    early = Backoff()
    for _ in range(5000):
        early.fail()
        pauses.append(early.pause)
    assert pauses == [1, 2, 4, 8, 16, *[LONGEST_PAUSE] * 4995]
    early.succeed()
    early.fail()
    assert early.pause == 1


def test_a_week_is_not_a_flood(clock: list[float]) -> None:
    early = Backoff()
    logged = 0
    for _ in range(WEEK):
        logged += early.fail()
        clock[0] = early.until
    assert early.count == WEEK
    # One in an hour.
    assert LOGGED + 160 < logged <= LOGGED + 168


def test_what_is_said() -> None:
    early = Backoff()
    assert early.fail()
    assert early.text() == ""
    assert early.fail()
    assert early.text().endswith("(2 in a row have died early)")
    for _ in range(LOGGED - 2):
        assert early.fail()
    assert "; from now on this is said every 60 minutes)" in early.text()
    assert not early.fail()


@pytest.mark.parametrize("preload", ["off", "on"])
def test_a_service_that_cannot_begin_for_some_time(preload: str, versions: Versions) -> None:
    """It tries again, with one worker at a time, and says when it is well again."""
    options = ("--workers", "2", "--preload", preload)
    with versions.serve("forking", *options) as server:
        wait_for(lambda: len(children(server.process.pid)) == 2, "two workers and no preloader")
        versions.set("broken")
        os.kill(children(server.process.pid)[0], signal.SIGKILL)
        server.wait_log(" in a row have died early)")
        assert "this version is broken" in server.log()
        versions.set("2")
        wait_for(lambda: told(server)["version"] == "2", "a worker that serves")
        server.wait_log("all workers serve again; ")


@pytest.mark.parametrize("count", [1, 2])
def test_recovery_from_one_early_death_is_not_logged(
    count: int, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each worker that died is in the log; the line about the end is for those in a row."""
    lines: list[str] = []
    monkeypatch.setattr(logs, "write", lambda level, line: lines.append(line))
    early = Backoff()
    for _ in range(count):
        early.fail()
    pool = cast(Any, SimpleNamespace(backoff=early, serving=2, count=2, last_start=1000.0, name=""))
    WorkerPool._check_recovery(pool, 1000.0 + PAUSE / 2)
    assert (early.count, lines) == (count, []), "they have not served for long enough"
    pool.serving = 1
    WorkerPool._check_recovery(pool, 1000.0 + PAUSE)
    assert (early.count, lines) == (count, []), "one of them is still missing"
    pool.serving = 2
    WorkerPool._check_recovery(pool, 1000.0 + PAUSE)
    told = ["all workers serve again; 2 had died early"] if count > 1 else []
    assert (early.count, lines) == (0, told)


def test_a_worker_that_still_loads_is_told_to_end_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between two signals the main process may sleep."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(signals, "send", lambda pid, number: sent.append((pid, number)))
    pool = cast(Any, None)
    worker = cast(Any, SimpleNamespace(pid=5, next_term=0.0))
    WorkerPool._repeat_term(pool, worker, 1000.0)
    assert sent == [], "it has just been told"
    for _ in range(3):
        before = worker.next_term
        WorkerPool._repeat_term(pool, worker, before)
        assert worker.next_term > before >= 1000.0
    assert sent == [(5, signal.SIGTERM)] * 3
