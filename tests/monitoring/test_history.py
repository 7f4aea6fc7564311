"""What is derived from figures: the last hour, quantiles, rates, notices, and `ctl advise`."""

from __future__ import annotations

import bisect
import json
import random
import signal
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from poorhttp.plugins.monitor.admin.model import BOUNDS
from poorhttp.plugins.monitor.derived import units
from poorhttp.plugins.monitor.derived.advice import advice, text
from poorhttp.plugins.monitor.derived.notices import notices
from poorhttp.plugins.monitor.derived.rates import Recent, added, quantile
from tests.support.binary_upgrade import end, upgrade
from tests.support.forked_command import run_command
from tests.support.status_documents import NOW, document, series, slot
from tests.support.status_reader import Admin
from tests.testkit.server import Server, patched, wait_for

if TYPE_CHECKING:
    from poorhttp.plugins.monitor.admin.model import Slot, Status

APP = "tests/apps/watched.py"


def slots(admin: Admin) -> list[Slot]:
    return admin.service()["history"]


def requests(admin: Admin) -> int:
    return sum(slot["requests"] for slot in slots(admin))


def waits(pid: int) -> int:
    """How often a process has begun to wait; -1 if it is ready to run and others have the cores."""
    status = Path(f"/proc/{pid}/status").read_text()
    count = int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])
    return count if "\nState:\tS" in status else -1


def test_minutes_with_requests(mode: str, folder: Path) -> None:
    """Each request is in one slot; between requests the main process sleeps."""
    admin = Admin(folder)
    launcher = patched("poorhttp.plugins.monitor.derived.history", MINUTE=0.3)
    with Server(APP, mode, *admin.options, launcher=launcher) as server:
        pid = server.process.pid
        assert slots(admin) == []
        most = 0
        for burst in range(1, 4):
            begun = time.monotonic()
            for _ in range(7):
                assert server.get("/?status=503").status == 503
            expected = 7 * burst
            wait_for(lambda: requests(admin) == expected, f"{expected} requests")  # noqa: B023
            most += 2 + int((time.monotonic() - begun) / 0.3)
            # No document is asked for: the slots end by themselves, and then nothing happens.
            quiet, before = time.monotonic(), -1
            while time.monotonic() - quiet < 0.6:
                if (now := waits(pid)) != before or now == -1:
                    quiet, before = time.monotonic(), now
                time.sleep(0.05)
            # On a busy machine it may also have slept because another process had to go on first.
            wait_for(lambda: all(slot["memory"] for slot in slots(admin)), "the end of the slot")
        found = slots(admin)
        assert sum(slot["requests"] for slot in found) == 21
        assert sum(slot["errors"] for slot in found) == 21
        # A quick burst is in one or two slots, and there are none between them.
        assert 3 <= len(found) <= most
        assert all(one["end"] <= other["begin"] for one, other in pairwise(found))


def test_another_main_process(folder: Path, tmp_path: Path) -> None:
    """It goes on with the slots of the one before, and with its slot under way; and so on."""
    admin, pidfile = Admin(folder), tmp_path / "pid"
    launcher = patched("poorhttp.plugins.monitor.derived.history", MINUTE=1.0)
    options = ("--pidfile", str(pidfile), *admin.options)
    with Server(APP, "threading", *options, launcher=launcher) as server:
        main = server.process.pid
        for _ in range(7):
            assert server.get("/?status=503").status == 503
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded: the new version serves")
        # Otherwise its end is the present.
        wait_for(lambda: slots(admin) == slots(admin) != [], "the end of the slot")
        (first,) = slots(admin)
        for number in range(1, 3):
            # These are in a slot under way.
            for _ in range(3):
                assert server.get("/").status == 200
            main = upgrade(server, pidfile, number)
            found = slots(admin)
            assert found[0] == first
            assert sum(slot["requests"] for slot in found) == 7 + 3 * number
            assert sum(slot["errors"] for slot in found) == 7
            assert admin.status()["reloads"]["succeeded"] == 1
        assert server.get("/").status == 200
        wait_for(lambda: requests(admin) == 14, "all requests")
        # The time goes on as well: no request is twice in the chart, and none in no time.
        assert all(one["end"] <= other["begin"] for one, other in pairwise(slots(admin)))
        end(server, main)


@pytest.mark.parametrize("seed", range(5))
def test_quantiles(seed: int) -> None:
    """A quantile of a histogram is in the bucket in which that of the durations is."""
    chance = random.Random(seed)
    durations = sorted(chance.lognormvariate(-6, 2) for _ in range(chance.randrange(1, 3000)))
    counts = [0] * (len(BOUNDS) + 1)
    for each in durations:
        counts[bisect.bisect_left(BOUNDS, each)] += 1
    for part in (0.01, 0.5, 0.9, 0.99, 1.0):
        exact = durations[max(0, -int(-part * len(durations) // 1) - 1)]
        place = bisect.bisect_left(BOUNDS, exact)
        found = quantile(counts, part)
        assert found is not None
        lower = BOUNDS[place - 1] if place else 0.0
        assert lower <= found <= BOUNDS[min(place, len(BOUNDS) - 1)]


def test_quantiles_at_the_edges() -> None:
    nothing = [0] * (len(BOUNDS) + 1)
    assert quantile(nothing, 0.5) is None
    assert quantile([*nothing[:-1], 3], 0.5) == BOUNDS[-1]
    assert quantile([4, *nothing[1:]], 0.5) == BOUNDS[0] / 2
    assert added([]) == nothing
    assert added([[1, *nothing[1:]], [2, *nothing[1:]]])[0] == 3


def test_rates() -> None:
    """Over the last seconds; before there are two documents, over the last minutes."""
    recent = Recent()
    recent.add(document())
    first = recent.rates(document()["services"][0])
    # Two slots of a minute with 1,580 and 1,540 requests.
    assert first["requests"] == pytest.approx((1580 + 1540) / 120)
    for each in series(10, seconds=2.0, requests=500)[1:]:
        recent.add(each)
        rates = recent.rates(each["services"][0])
        assert rates["requests"] == pytest.approx(250)
        assert rates["sent"] == pytest.approx(250 * 13_021)
    # A counter that has become smaller, or a clock that was set back, is no negative rate.
    recent.add(document())
    assert recent.rates(document()["services"][0])["requests"] >= 0


def said(*statuses: Status) -> list[str]:
    """What stands out in the last of these documents."""
    recent = Recent()
    for status in statuses:
        recent.add(status)
    return notices(statuses[-1], recent)


def test_what_stands_out() -> None:
    """Workers that have died or compute all the time, and threads that are all taken."""
    quiet, later = series(2)
    assert said(quiet, later) == ["6 log lines were lost"]
    (service,) = later["services"]
    service["workers"][0]["cpu"] += 1.9
    service["history"][-2]["died"] = 2
    service["history"][0]["died"] = 1
    service["figures"].update({"in_flight": 16, "queued": 0})
    service["accept_queues"], service["unread"] = [], 0
    assert [each.partition(":")[0] for each in said(quiet, later)[:-1]] == [
        "2 workers have died in the last minutes",
        "all 16 threads that run requests are taken, for up to 13 s, and others have to wait",
        "a worker uses a whole processor, which all threads of a worker share",
    ]
    service["figures"]["queued"] = 2
    service["accept_queues"] = [{"url": "http://127.0.0.1:80", "waiting": 3, "limit": 100}]
    service["unread"] = 4
    # Two of the four are known to a worker.
    assert said(quiet, later)[1].startswith("all 16 threads that run requests are taken, and 7 ")
    # A full worker is no dead one.
    service["answering"], service["full"] = 0, 2
    assert not any("workers answer" in each for each in said(quiet, later))
    service["full"] = 1
    assert said(quiet, later)[0] == "0 of 2 workers answer, and 1 are full"


def test_units() -> None:
    seconds = (None, 0.0, 0.00042, 0.0042, 0.042, 0.42, 4.2, 42, 420, 4200, 420_000)
    assert [units.seconds(each) for each in seconds] == [
        *("–", "0 µs", "420 µs", "4.2 ms", "42 ms", "420 ms", "4.20 s", "42 s", "7 min"),
        *("1 h 10 min", "4 d 20 h"),
    ]
    octets = [units.octets(each) for each in (0, 999, 1024, 5 << 20, 3 << 40)]
    assert octets == ["0 B", "999 B", "1.0 KiB", "5.0 MiB", "3.0 TiB"]
    assert [units.percent(each) for each in (0, 0.004, 0.5, 1)] == ["0 %", "0.4 %", "50 %", "100 %"]
    assert [units.rate(each) for each in (0, 0.5, 12.34, 1234)] == ["0", "0.50", "12.3", "1,234"]
    assert units.moment(0) == "1970-01-01T00:00:00Z"
    assert units.moment(1e30) == "–"


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
