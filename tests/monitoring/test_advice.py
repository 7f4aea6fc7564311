"""`poorhttp ctl advise`: workers and threads by the figures of the last hour."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from poorhttp.plugins.monitor.derived.advice import advice, text
from tests.support.forked_command import run_command
from tests.support.status_documents import NOW, document, slot
from tests.support.status_reader import Admin
from tests.testkit.server import Server

if TYPE_CHECKING:
    from poorhttp.plugins.monitor.admin.model import Status


def made(mode: str, rate: float, takes: float, computes: float, workers: int = 1) -> Status:
    """A server with so many requests a second, which take and compute for so many seconds."""
    status = document()
    service = status["services"][0]
    del service["workers"][workers:]
    service["mode"], service["wanted"] = mode, workers
    service["workers_follow_load"] = False
    service["history"] = [slot(NOW - 60 * each, int(60 * rate)) for each in range(10, 0, -1)]
    number = int(600 * rate)
    times = service["figures"]["application"]
    times["counts"] = [number, *[0] * (len(times["counts"]) - 1)]
    times["sum"] = number * takes
    for worker in service["workers"]:
        worker["requests"], worker["cpu"] = number // workers, number * computes / workers
        worker["pss"] = 50_000_000
    return status


@pytest.mark.parametrize(
    ("mode", "rate", "takes", "computes", "settings"),
    [
        # 300 a second of 80 ms are 24 at once: the example of docs/guides/choose-a-mode.md.
        ("threading", 300, 0.080, 0.001, {"workers": "1", "threads": "36"}),
        # They compute for most of the time: as many threads as can be of use, and more workers.
        ("threading", 200, 0.010, 0.008, {"workers": "4", "threads": "4"}),
        ("threading", 10, 0.010, 0.001, {"workers": "1", "threads": "4"}),
        ("forking", 100, 0.020, 0.018, {"workers": "3"}),
        ("forking", 100, 0.500, 0.001, {"mode": "threading", "workers": "1", "threads": "75"}),
        ("gevent", 100, 0.500, 0.012, {"workers": "3"}),
        ("single", 10, 0.010, 0.010, {}),
    ],
)
def test_what_is_advised(
    mode: str, rate: float, takes: float, computes: float, settings: dict[str, str]
) -> None:
    (found,) = advice(made(mode, rate, takes, computes))
    assert found["settings"] == settings, found


def test_the_price_in_memory() -> None:
    more, fewer = (
        advice(made("threading", rate, 0.010, 0.008, workers))[0]["memory"]
        for rate, workers in ((200, 1), (10, 2))
    )
    # Three workers more, and 16 threads in place of 8; one worker less, and 4 in place of 16.
    assert (more, fewer) == (3 * 50_000_000 + 8 * 40_000, -50_000_000 - 12 * 40_000)
    assert "Memory: 143 MiB more than now" in text(made("threading", 200, 0.010, 0.008))


def test_an_overloaded_machine() -> None:
    assert "another machine is needed" in text(made("threading", 500, 0.010, 0.009))


def test_too_little_is_known() -> None:
    (found,) = advice(made("threading", 1, 0.080, 0.001))
    assert not found["settings"]
    assert "600 requests in the last hour: fewer than 1000" in found["why"][0]


def test_a_running_server_is_asked(folder: Path) -> None:
    admin = Admin(folder)
    with Server("tests.apps.statuses:application", "threading", *admin.options):
        done = run_command("ctl", "--admin", f"unix:{admin.path}", "advise")
        assert done.returncode == 0, done
        assert done.stdout.startswith("No advice: There were 0 requests in the last hour: fewer")
        listed = run_command("ctl", "--admin", f"unix:{admin.path}", "advise", "--json")
        assert json.loads(listed.stdout)[0]["settings"] == {}
