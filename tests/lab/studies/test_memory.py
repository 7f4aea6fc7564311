"""The study `memory`: ps, slopes, leaks, memory by line, and servers that fail."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from loadtests.errors import LabError, ServerFailure
from loadtests.reporting import markdown
from loadtests.servers.application import Application
from loadtests.servers.registry.studies import MEMORY
from loadtests.stats.trend import Slope, theil_sen
from loadtests.studies.memory import by_line, curve, leak, moments
from loadtests.studies.memory.moments import parse_ps
from loadtests.studies.memory.profiled import EXAMPLES
from loadtests.studies.memory.study import STUDY
from tests.lab.studies.small_run import failures, run, tables
from tests.packages import need

LEAKY = """
from loadtests.apps import varied
kept = []
def application(environ, start_response):
    kept.append(bytes(1000))
    return varied.application(environ, start_response)
"""

BY_NAME = {server.name: server for server in MEMORY}
SINGLE = BY_NAME["poorhttp single"]

HEAD = """
from collections.abc import Iterable
import os, time
asked = []
def application(environ, start_response):
    asked.append(1)
"""
ANSWER = """
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
"""


def an_application(folder: Path, body: str) -> Application:
    (folder / "written.py").write_text(HEAD + body + ANSWER, encoding="utf-8")
    return Application(str(folder), "written")


# What ps says


def test_what_ps_says() -> None:
    said = "    PID  SIZE    VSZ\n      1   304   2576\n  12345 75616 608536\n"
    assert parse_ps(said) == {1: (311296, 2637824), 12345: (77430784, 623140864)}


@pytest.mark.parametrize("said", ["", "  PID  RSS\n 1 2\n", "  PID SIZE VSZ\n 1 2\n"])
def test_what_ps_does_not_say(said: str) -> None:
    with pytest.raises(LabError, match="ps "):
        parse_ps(said)


# Slopes


def test_the_slope_of_a_line() -> None:
    assert theil_sen([(x, 3.0 * x + 1) for x in range(10)]) == Slope(3, 3, 3)
    assert theil_sen([(x, 7.0) for x in range(10)]) == Slope(0, 0, 0)


def test_a_slope_that_was_worked_out_by_hand() -> None:
    # Of ten slopes 1, 1.5, 2, 7/3, 3, 3.75, 4, 14/3, 6 and 8; chance is 1.96 √(5·4·15/18) = 8.0.
    points = [(1.0, 1.0), (2.0, 2.0), (3.0, 4.0), (4.0, 8.0), (5.0, 16.0)]
    assert theil_sen(points) == Slope(3.375, 1, 8)


def test_the_interval_has_the_true_slope_as_often_as_it_says() -> None:
    lot = random.Random(1)
    hits = 0
    for _ in range(400):
        found = theil_sen([(x, 5 * x + lot.gauss(0, 20)) for x in range(20)])
        assert found.low <= found.estimate <= found.high
        hits += found.low <= 5 <= found.high
    assert 370 <= hits <= 395


@pytest.mark.parametrize(
    ("slope", "words"),
    [
        (Slope(150_000, 140_000, 160_000), "grows"),
        (Slope(0, -500, 2_000), "does not grow"),
        (Slope(-40_000, -90_000, -3_000), "does not grow"),
        (Slope(10_000, -5_000, 30_000), "undecided"),
        # Not a mebibyte after ten thousand requests.
        (Slope(100_000, 90_000, 110_000), "undecided"),
    ],
)
def test_verdicts(slope: Slope, words: str) -> None:
    assert leak.verdict(slope, 10_000) == words


def test_growth() -> None:
    points = [{"requests": 100 * n, "uss": 7 if n else 0, "descriptors": 5 + n} for n in range(11)]
    assert leak.growth(points, "uss").estimate == 0
    assert leak.growth(points, "descriptors").estimate == pytest.approx(10)


# Requests


def test_what_is_drawn() -> None:
    assert sum(leak.SHARES.values()) == 100
    requests = leak.drawn(3, 10_000)
    counts = Counter(request.kind for request in requests)
    for kind, share in leak.SHARES.items():
        assert counts[kind] == pytest.approx(share * 100, rel=0.2), kind
    for request in requests:
        head, blank, body = request.octets.partition(b"\r\n\r\n")
        length = int((re.findall(rb"Content-Length: (\d+)", head) or [b"0"])[0])
        assert bool(blank) == (request.kind != leak.HEAD)
        assert (len(body) < length) == (request.kind == leak.BODY)
        aborted = request.kind in (leak.HEAD, leak.BODY, leak.ANSWER)
        assert (request.status is None) == aborted


# Leaks


def test_a_leak_is_found(tmp_path: Path) -> None:
    (tmp_path / "leaky.py").write_text(LEAKY, encoding="utf-8")
    leaky = Application(str(tmp_path), "leaky", dated=True)
    points, asked = leak.endure(SINGLE, leaky, range(300, 3301, 300), None)
    slope = leak.growth(points, "uss")
    assert asked.total() == 3300
    assert set(asked) == set(leak.SHARES)
    assert [point["requests"] for point in points] == list(range(300, 3301, 300))
    assert leak.verdict(slope, 3000) == "grows"
    # 1,000 octets, what Python puts before them, and their place in the list, of most requests.
    assert 800_000 < slope.estimate < 1_500_000


def test_what_does_not_leak_is_not_found() -> None:
    points, _ = leak.endure(SINGLE, leak.VARIED, range(300, 3301, 300), None)
    assert leak.verdict(leak.growth(points, "uss"), 3000) != "grows"
    # Not all are the same on a busy machine: the connections of a client that left may be open.
    assert leak.growth(points, "descriptors").low <= 0


def test_a_process_that_ends_meanwhile(tmp_path: Path) -> None:
    body = "    body = b'x'\n    if len(asked) == 50: os._exit(3)"
    with pytest.raises(ServerFailure):
        leak.endure(SINGLE, an_application(tmp_path, body), range(100, 301, 100), None)


# The whole study


def test_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("ps", "wrk")
    monkeypatch.setattr(leak, "STEADY_SECONDS", 0.02)
    ending = replace(SINGLE, name="poorhttp ending", command="{python} -c exit(7)")
    results = run(STUDY, tmp_path, [SINGLE, ending])
    assert failures(results) == {ending.name}
    assert len(results.failures) == 2
    for sample in results.samples:
        if sample["scenario"] in moments.MOMENTS:
            assert 0 < sample["uss"] <= sample["pss"] <= sample["rss"]
            assert sample["shared"] == sample["rss"] - sample["uss"]
            assert 0 < sample["size"] <= sample["vsize"] <= sample["vsizes"]
            assert sample["size"] <= sample["sizes"]
            assert sample["threads"] >= sample["processes"]
            # A worker, and the main process.
            assert sample["processes"] == 2
        elif sample["scenario"] == curve.SCENARIO:
            assert sample["milliseconds"] == sorted(sample["milliseconds"])
            assert len(sample["pss"]) == len(sample["milliseconds"]) > len(curve.PHASES)
            assert sample["begins"] == sorted(sample["begins"])
            assert all(1 << 20 < pss < 1 << 30 for pss in sample["pss"])
        elif sample["scenario"] == leak.SCENARIO:
            assert sum(sample["asked"].values()) == sample["requests"]
            assert sample["stages"][-1]["requests"] == sample["requests"]
    scenarios = Counter(sample["scenario"] for sample in results.samples)
    assert scenarios == {
        **dict.fromkeys(moments.MOMENTS, 1),
        curve.SCENARIO: 1,
        leak.SCENARIO: 1,
        by_line.SCENARIO: len(EXAMPLES),
    }

    sections = STUDY.report(results)
    told = tables(sections)
    assert len(sections) == 4
    assert {row[0] for row in told["memory-ps"].rows} == {SINGLE.name}
    assert all(section.answer for section in sections)
    text = markdown.tables(sections)
    failed = f"Failed: memory over time, round 1 of 1, {ending.name}"
    assert f"{failed}: it ended with exit code 7" in text
    # Too little was asked for a verdict.
    assert {row[-2] for row in told["memory-leak"].rows} == {"not told after so short a warm-up"}
