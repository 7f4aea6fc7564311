"""The study `resources`: counters of the kernel, and a small run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from loadtests.measure import resources, sampler
from loadtests.measure.sampler import Look, Traffic
from loadtests.reporting.model import Panels
from loadtests.studies import remote
from loadtests.studies import resources as steps
from loadtests.studies.resources import STUDY
from tests.lab.studies.small_run import chosen, run, tables
from tests.support.network import hosts
from tests.testkit.client import HANG

DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop
    lo:  100       2    0    0    0     0          0         0      300       4    0    0    0
  eth0:1234567    89    0    0    0     0          0         0 7654321       98    0    0    0
"""


def test_parse_traffic() -> None:
    assert sampler.parse_traffic(DEV, "lo") == Traffic(100, 2, 300, 4)
    assert sampler.parse_traffic(DEV, "eth0") == Traffic(1234567, 89, 7654321, 98)
    assert sampler.parse_traffic(DEV, "eth1") == Traffic()


def test_amounts_between_looks() -> None:
    before = Look(10.0, 1.0, 2.0, 100, 200, 1, Traffic(0, 0, 1000, 10))
    after = Look(12.0, 1.5, 2.25, 100, 200, 1, Traffic(400, 4, 3000, 30))
    used = steps.used(before, after, 2.0)
    assert used == {
        "user": 0.25,
        "system": 0.125,
        "received_octets": 200,
        "received_packets": 2,
        "sent_octets": 1000,
        "sent_packets": 10,
    }
    series = steps.series([before, after])
    assert series["at"] == [2.0]
    assert series["sent_packets"] == [10]


WORKING = """\
import os, sys, time
if os.fork() == 0:
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    os._exit(0)
os.wait()
end = time.process_time() + 0.2
while time.process_time() < end:
    pass
print("done", flush=True)
sys.stdin.read()
"""


def spent(process: int) -> float:
    """As studies count it: exact for processes that live, to a tick for those that have ended."""
    return resources.cpu_seconds([process]) + resources.reaped_seconds([process])


def test_time_of_processes_that_have_ended_counts() -> None:
    command = [sys.executable, "-c", WORKING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        exact = spent(process.pid)
        user, system = sampler.times([process.pid])
        later = spent(process.pid)
        assert sampler.look([process.pid], "lo").pss > 2**20
        process.communicate(timeout=HANG)
    # Of each of the four times of /proc/PID/stat up to a tick is missing.
    rounding = 4 / resources.TICKS
    assert exact >= 0.4 - rounding
    assert exact - rounding <= user + system <= later + rounding
    assert sampler.times([process.pid]) == (0, 0)


def test_a_server_in_a_network(tmp_path: Path) -> None:
    with hosts():
        pass
    names = ["poorhttp single", "poorhttp single, WSGI"]
    results = run(STUDY, tmp_path, chosen(STUDY, *names))
    assert not results.failures
    samples = results.samples
    assert len(samples) == 2
    for sample in samples:
        requests = sample["requests"]
        # A page is 8,600 octets in at least six frames; and its connection has four frames more.
        assert 8_600 < sample["sent_octets"] * sample["seconds"] / requests < 2 * 8_600
        assert sample["sent_packets"] * sample["seconds"] > requests
        assert sample["received_packets"] * sample["seconds"] > 3 * requests
        assert sample["rate_bits"] == remote.LAN.rate
        # In whole ticks, of which few requests may take none.
        assert sample["user"] >= 0 <= sample["system"]
        assert sample["pss"] <= sample["rss"]
        series = sample["series"]
        assert {len(values) for values in series.values()} == {len(series["at"])}
        assert series["at"] == sorted(series["at"])
        # Nobody asks before the load begins.
        assert series["sent_packets"][0] < max(series["sent_packets"])
    sections = STUDY.report(results)
    table, _then = tables(sections).values()
    assert {row[0] for row in table.rows} == {*names}
    assert sections[0].answer
    parts = [part for section in sections for part in section.parts]
    (panels,) = [part for part in parts if isinstance(part, Panels)]
    assert [len(panel.lines) for panel in panels.panels] == [2] * 4
