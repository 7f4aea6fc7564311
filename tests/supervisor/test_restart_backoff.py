"""Delays between restarts of workers that end early, on a simulated clock."""

from __future__ import annotations

import os
import signal
import time

import pytest

from poorhttp.supervisor.backoff import LOGGED, LONGEST_PAUSE, Backoff
from tests.testkit.process import children
from tests.testkit.server import patched, wait_for
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


def test_a_service_that_cannot_begin_for_some_time(versions: Versions) -> None:
    """It tries again, with one worker at a time, and says when it is well again."""
    options = ("--workers", "2", "--preload")
    launcher = patched("poorhttp.supervisor.backoff", LONGEST_PAUSE=0.1)
    with versions.serve("forking", *options, launcher=launcher) as server:
        wait_for(lambda: len(children(server.process.pid)) == 2, "two workers and no preloader")
        versions.set("broken")
        os.kill(children(server.process.pid)[0], signal.SIGKILL)
        server.wait_log(" in a row have died early)")
        server.wait_log("this version is broken")
        versions.set("2")
        wait_for(lambda: told(server)["version"] == "2", "a worker that serves")
        server.wait_log("all workers serve again; ")
