"""The study `loops`: requests, outliers, and a small run."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loadtests.arguments import choose
from loadtests.measure import histogram
from loadtests.measure.sampler import parse_traffic
from loadtests.network.hosts import Host, Network
from loadtests.stats.results import Spread
from loadtests.studies import loops as steps
from loadtests.studies import remote
from loadtests.studies.loops import STUDY, Outlier, curve, outliers
from loadtests.studies.remote import LAN, OUTSIDE, Way
from tests.lab.studies.small_run import run, tables
from tests.support.network import hosts
from tests.testkit.client import HANG


def test_outliers() -> None:
    times = [100.0] * 10
    times[2], times[5], times[9] = 1000.0, 1001.0, 5000.0
    found = outliers(times, ["/"] * 9 + ["/last"])
    assert found == [Outlier(6, 1001.0, "/"), Outlier(10, 5000.0, "/last")]
    # Long, but no more than ten times the median.
    assert outliers([600.0, 600.0, 5000.0], ["/"] * 3) == []


def test_a_curve_keeps_what_stands_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "POINTS", 10)
    times = [float(number) for number in range(1, 1001)]
    times[499] = 1e6
    apart = [Outlier(500, 1e6, "/")]
    points = curve(times, apart)
    assert len(points) == 11
    assert (500, 1e6) in points
    numbers = [number for number, _ in points]
    assert numbers == sorted(numbers)
    assert all(abs(number - time) < 2 for number, time in points if number != 500)
    assert curve([7.0, 8.0], []) == [(1, 7.0), (2, 8.0)]


def test_local_loops(tmp_path: Path) -> None:
    servers = choose("server", STUDY.servers(), ["poorhttp single", "poorhttp forking"])
    results = run(STUDY, tmp_path, servers, local=True, servers=[])
    assert not results.failures
    samples = results.samples
    ran = list(dict.fromkeys(str(sample["server"]) for sample in samples))
    assert set(ran) >= {"poorhttp single", "poorhttp forking 2", "poorhttp single, WSGI"}
    assert len(samples) == len(ran) * 3 * steps.FEWEST_RUNS
    for sample in samples:
        pages = 5 if sample["scenario"] == "L2" else 1
        assert sample["requests"] == steps.FEWEST * pages
        assert 0 < sample["min_us"] <= sample["p50_us"] <= sample["max_us"]
        assert sample["min_us"] <= sample["mean_us"] <= sample["max_us"]
        # One after the other: all of them take no longer than the run.
        assert sample["mean_us"] * sample["requests"] <= sample["seconds"] * 1e6 * 1.01
        assert sample["octets"] > 8_600 * sample["requests"]
        assert sample["cpu_us"] > 0
        times = histogram.merge([sample["times"]])
        assert times.get_total_count() == sample["requests"]
        assert ("curve" in sample) == (sample["round"] == 0)
    found = tables(STUDY.report(results))
    assert sorted(str(row[0]) for row in found["loops-l1"].rows) == sorted(ran)
    means = [row[1].median for row in found["loops-l1"].rows if isinstance(row[1], Spread)]
    assert len(means) == len(ran)
    assert means == sorted(means)
    # Two runs and the mean.
    assert len(found["loops-l2-runs"].rows) == 3 * len(ran)
    one, other, mean = (row[2] for row in found["loops-l2-runs"].rows[:3])
    assert isinstance(one, float)
    assert isinstance(other, float)
    assert mean == pytest.approx((one + other) / 2)
    assert not any(name.startswith("loops-r") for name in found)
    assert len(found["loops-2005"].rows) == 21


@pytest.mark.full
def test_remote_loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through links of each way's delay and rate (whose times are in test_lab_network.py)."""
    with hosts():
        pass
    # A request from outside takes 60 ms.
    monkeypatch.setattr(steps, "OUTSIDE_FEWEST", 2)
    links: list[tuple[str, float, float]] = []
    queues: list[str] = []
    crossed: list[int] = []
    disturb = Host.disturb

    def seen(host: Host, delay: float = 0.0, loss: float = 0.0, rate: float = 0.0) -> None:
        links.append((host.name, delay, rate))
        disturb(host, delay, loss, rate)

    @contextmanager
    def apart(way: Way) -> Iterator[Network]:
        with remote.apart(way) as ends:
            yield ends
            queue = [*ends["server"].launcher, "tc", "qdisc", "show", "dev", "eth0"]
            queues.append(subprocess.check_output(queue, text=True, timeout=HANG))
            with ends["server"].inside():
                counters = Path("/proc/thread-self/net/dev").read_text(encoding="ascii")
            crossed.append(parse_traffic(counters, "eth0").sent_octets)

    monkeypatch.setattr(Host, "disturb", seen)
    monkeypatch.setattr(steps, "apart", apart)
    (single,) = [server for server in STUDY.servers() if server.name == "poorhttp single"]
    results = run(STUDY, tmp_path, [single], local=False, servers=[])
    assert not results.failures
    runs = [way for way in (LAN, OUTSIDE) for _ in range(steps.FEWEST_RUNS)]
    assert links == [("server", way.delay, way.rate) for way in runs]
    for way, queue in zip(runs, queues, strict=True):
        assert f"rate {way.rate / 1e6:.0f}Mbit" in queue
    samples = results.samples
    for way in (LAN, OUTSIDE):
        those = [sample for sample in samples if sample["scenario"].endswith(way.name)]
        assert len(those) == 3 * steps.FEWEST_RUNS
        for sample in those:
            assert (sample["delay_seconds"], sample["rate_bits"]) == (way.delay, way.rate)
            assert 0 < sample["min_us"] <= sample["p50_us"] <= sample["max_us"]
            if way is OUTSIDE:
                pages = 5 if sample["scenario"].startswith("R2") else 1
                assert sample["requests"] == steps.OUTSIDE_FEWEST * pages
        for number in range(steps.FEWEST_RUNS):
            answers = sum(sample["octets"] for sample in those if sample["round"] == number)
            # All answers went through the link.
            assert answers < crossed[runs.index(way) + number]
    found = tables(STUDY.report(results))
    assert {"loops-l1", "loops-r1-lan", "loops-r3-outside", "loops-r2-lan-runs"} <= set(found)
