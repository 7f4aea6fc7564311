"""Verdicts on two servers: error rates by simulation, stored runs, conditions, a real run."""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from loadtests import store
from loadtests.errors import ServerFailure
from loadtests.measure import disturbance
from loadtests.programs import ROOT
from loadtests.reporting.model import Section, Table
from loadtests.stats.results import Results
from loadtests.stats.verdict import (
    ERROR,
    LESS,
    LOOKS,
    MORE,
    UNDECIDED,
    Ratio,
    of_rounds,
    of_runs,
    signed_rank,
)
from loadtests.studies import command
from loadtests.studies.catalogue import STUDIES
from loadtests.verdict import report, rounds, stored
from loadtests.verdict.quantities import QUANTITIES, Verdict, differences
from loadtests.verdict.thresholds import FAILS, HOLDS, UNKNOWN, condition

CPU = QUANTITIES["cpu"]
RUNS = 400
Noise = Callable[[random.Random, int], float]


def steady(lot: random.Random, _: int) -> float:
    """Two percent, as samples of half a second have on a quiet machine."""
    return lot.gauss(0, 0.02)


def drifting(lot: random.Random, slot: int) -> float:
    """A machine that becomes slower all the time."""
    return 0.01 * slot + lot.gauss(0, 0.02)


def heavy(lot: random.Random, _: int) -> float:
    """Now and then something takes several times as long."""
    return abs(lot.gauss(0, 0.02)) + (lot.expovariate(1) if lot.random() < 0.1 else 0)


def waves(lot: random.Random, slot: int) -> float:
    """A neighbour that comes and goes with about the period of a round."""
    return 0.1 * math.sin(slot * 2.1) + lot.gauss(0, 0.02)


def simulated(lot: random.Random, noise: Noise, effect: float, zone: float) -> tuple[str, int]:
    """What a run says, and after how many rounds, if B takes so much more."""
    found: list[float] = []
    for slot in range(LOOKS[-1]):
        order = rounds.ORDERS[lot.random() < 0.5]
        values = [which * effect + noise(lot, 4 * slot + n) for n, which in enumerate(order)]
        both = [[v for v, of in zip(values, order, strict=True) if of == one] for one in (0, 1)]
        found.append(sum(both[1]) / 2 - sum(both[0]) / 2)
        if len(found) in LOOKS:
            ratio = of_rounds(found, len(LOOKS))
            if ratio.verdict(zone) != UNDECIDED:
                return ratio.verdict(zone), len(found)
    return UNDECIDED, len(found)


class TestRounds:
    @pytest.mark.parametrize("noise", [steady, drifting, heavy, waves])
    def test_the_same_server_twice(self, noise: Noise) -> None:
        """Without the zone, which only makes it more careful: no more errors than are promised."""
        lot = random.Random(42)
        wrong = sum(simulated(lot, noise, 0, 0)[0] != UNDECIDED for _ in range(RUNS))
        assert wrong / RUNS <= ERROR

    @pytest.mark.parametrize("noise", [steady, drifting])
    @pytest.mark.parametrize("effect", [0.05, -0.05])
    def test_one_that_differs_by_five_percent(self, noise: Noise, effect: float) -> None:
        lot = random.Random(42)
        said = [simulated(lot, noise, effect, 0.01) for _ in range(100)]
        right = MORE if effect > 0 else LESS
        assert sum(word == right for word, _ in said) >= 95
        assert {word for word, _ in said} <= {right, UNDECIDED}
        # A round takes about five seconds.
        assert sorted(count for _, count in said)[94] <= 27

    def test_against_a_table(self) -> None:
        """Of ten pairs 8 means are beyond each end at 5 % (Hollander and Wolfe, table A.4)."""
        values = [float(2**n) for n in range(10)]
        means = sorted((a + b) / 2 for n, a in enumerate(values) for b in values[n:])
        _, low, high = signed_rank(values, 0.05)
        assert (low, high) == (means[8], means[-9])

    def test_too_few_say_nothing(self) -> None:
        assert of_rounds([0.1] * 4).verdict() == UNDECIDED
        assert of_rounds([]).high == math.inf

    def test_rounds_that_are_not_whole(self) -> None:
        samples = [
            {"server": name, "round": number, "cpu_us": value}
            for number, name, value in ((1, "a", 1.0), (1, "b", math.e), (2, "a", 1.0))
        ]
        assert differences(samples, ("a", "b"), "cpu_us") == [1.0]


class TestRuns:
    def test_the_noise_is_that_of_runs(self) -> None:
        lot = random.Random(1)
        wrong = 0
        for _ in range(RUNS):
            before, after = ([lot.gauss(0, 0.1) for _ in range(4)] for _ in range(2))
            wrong += of_runs(before, after, []).verdict(0) != UNDECIDED
        assert wrong / RUNS <= 0.07
        assert of_runs([0, 0.01, -0.01], [0.5, 0.51, 0.49], []).verdict() == MORE

    def test_the_noise_is_that_of_others(self) -> None:
        lot = random.Random(1)
        wrong = 0
        for _ in range(RUNS):
            # The second run is slower for all.
            others = [0.3 + lot.gauss(0, 0.1) for _ in range(6)]
            wrong += of_runs([0.0], [0.3 + lot.gauss(0, 0.1)], others).verdict(0) != UNDECIDED
        assert wrong / RUNS <= 0.07
        assert of_runs([0.0], [0.9], [0.3, 0.31, 0.29]).verdict() == MORE

    def test_one_run_each_alone(self) -> None:
        assert of_runs([0.0], [0.9], []).verdict() == UNDECIDED


def results(run: str, factor: float, **machine: object) -> Results:
    """A run of four servers, the first of which takes `factor` times as much."""
    head = {"record": "run", "run": run, "seconds": 1, "machine": {"cpu": "x", **machine}}
    samples = [
        {
            "record": "sample",
            "run": run,
            "experiment": "bench",
            "scenario": "hello-64",
            "server": name,
            "round": number,
            "cpu_us": 100 * (factor if name == "a" else 1.0 + 0.001 * ord(name) / 97),
        }
        for name in "abcde"
        for number in range(3)
    ]
    return Results([head, *samples])


class TestStored:
    def test_apart(self) -> None:
        found = stored.apart(results("1", 1.0), results("2", 1.5), CPU, 0.01)
        assert found["hello-64 · a"].word == "slower"
        assert {found[f"hello-64 · {name}"].word for name in "bcde"} == {UNDECIDED}

    def test_of_different_machines(self) -> None:
        found = stored.apart(results("1", 1.0), results("2", 1.5, cores=9), CPU, 0.01)
        assert {one.word for one in found.values()} == {UNDECIDED}
        assert found["hello-64 · a"].reason == "the machines are not the same"


def disturbed(others: float) -> list[dict[str, Any]]:
    """The stored results of `serial`, as if others had used so much in each step."""
    around = {"others": others, "stolen": 0.0, "mhz": [0, 0]}
    records = store.load([ROOT / "loadtests" / "results" / "serial.jsonl.xz"])
    return [{**one, "machine": around} if one["record"] == "done" else one for one in records]


class TestBusyMachine:
    def test_no_winner_is_named(self) -> None:
        calm = command.sections(Results(disturbed(0.05)), [STUDIES["serial"]])
        busy = command.sections(Results(disturbed(0.5)), [STUDIES["serial"]])
        assert any("best" in one.answer for one in calm)
        assert not any("best" in one.answer for one in busy)
        first = next(one.answer for one in busy if one.answer)
        assert first == "Other programs used 50 % of the machine, so no winner is named."

    def test_what_was_measured_apart_is_ranked_apart(self, tmp_path: Path) -> None:
        paths = [tmp_path / name for name in ("one.jsonl", "other.jsonl")]
        for path in paths:
            path.write_text("".join(json.dumps(one) + "\n" for one in disturbed(0)))
        alone, both = (command.side_by_side(files)["serial"] for files in (paths[:1], paths))
        assert [one.title for one in both] == [
            f"{one.title} ({place}: {path.name})"
            for place, path in enumerate(paths, 1)
            for one in alone
        ]


def verdict(name: str, low: float, high: float, reason: str = "") -> Verdict:
    return Verdict(QUANTITIES[name], Ratio((low + high) / 2, low, high, 20), 50.0, 55.0, reason)


class TestConditions:
    @pytest.mark.parametrize(
        ("text", "outcome"),
        [
            ("p99 > 1.1 * base", HOLDS),
            ("p99 > 1.25 * base", UNKNOWN),
            ("p99 > 1.5*base", FAILS),
            ("p99 < 2 * base", HOLDS),
            ("p99 > 0.05 s", HOLDS),
            ("cpu > 1 ms", FAILS),
            ("cpu > 40 us", UNKNOWN),
            ("slower", UNKNOWN),
        ],
    )
    def test_outcome(self, text: str, outcome: str) -> None:
        known = {
            "cpu": verdict("cpu", 1.2, 1.4, "the machine was busy"),
            "p99": verdict("p99", 1.2, 1.4),
        }
        if text == "cpu > 1 ms":
            known["cpu"] = verdict("cpu", 1.2, 1.4)
        assert condition(text).judged(known) == outcome

    @pytest.mark.parametrize("text", ["p98 > 1.1 * base", "p99 >= 2", "p99 > base", "fast"])
    def test_refused(self, text: str) -> None:
        with pytest.raises(argparse.ArgumentTypeError):
            condition(text)


def test_words() -> None:
    def said(*of: Any) -> str:
        return report.headline(report.Comparison(("old", "new"), {"x": verdict(*of)}))

    assert said("cpu", 1.04, 1.06).startswith("new uses 5.0 % more CPU than old: CPU time per")
    assert said("rate", 1.04, 1.06).startswith("new is 5.0 % faster than old")
    assert said("p99", 0.98, 1.06).startswith("Not to be told whether new is faster or slower")
    assert said("cpu", 0.98, 1.06).startswith("Not to be told whether new uses less or more CPU")
    assert "Any difference is below 1 %" in said("cpu", 0.995, 1.005)
    assert said("cpu", 1.04, 1.06, "others").startswith("Not to be told: others, so no winner")


@pytest.mark.parametrize(
    ("name", "ratios", "words"),
    [
        ("rate", [4.1, 4.9], "In all 2 disturbed rounds new was ahead: requests of new 4.1 to 4.9"),
        ("p99", [4.1, 4.9], "In all 2 disturbed rounds old was ahead: p99 of new 4.1 to 4.9 times"),
        ("p99", [1.001, 4.9], "Neither was ahead in all 2 disturbed rounds: p99 of new 1 to 4.9"),
        ("p99", [0.5], "In the only disturbed round new was ahead: p99 of new 0.5 times"),
    ],
)
def test_words_on_disturbed_rounds(name: str, ratios: list[float], words: str) -> None:
    none = of_rounds([])
    one = Verdict(QUANTITIES[name], none, 50, 55, "others used 90 %", disturbed=ratios)
    found = report.Comparison(("old", "new"), {"x": one})
    assert one.word == UNDECIDED
    assert report.headline(found).startswith("Not to be told: others used 90 %, so no winner")
    assert words in report.headline(found)
    assert "+0.0" not in report.text(found) + str(report.table(found))


def test_who_used_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the lab, not the servers, and nobody who used next to nothing."""
    used = {(1, "cc"): 9.0, (2, "ld"): 7.5, (3, "ours"): 50.0, (os.getpid(), "lab"): 60.0}
    monkeypatch.setattr("loadtests.measure.disturbance.programs", lambda: used)
    said = disturbance.busiest({(1, "cc"): 5.0, (2, "ld"): 7.0}, [3])
    assert said == "Most CPU time was used by cc (PID 1, 4 s)."


#: A server that starts quickly: a run of eight rounds starts 32 of them.
SLOW = """\
import socket
import sys
import threading

def serve(connection):
    with connection:
        while connection.recv(65536):
            sum(range(60_000))
            connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")

listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()
"""


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Two servers, of which the second takes several times as long."""
    monkeypatch.setattr("loadtests.measure.disturbance.STOLEN", math.inf)
    monkeypatch.setattr("loadtests.verdict.rounds.WARM_SECONDS", 0.05)
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "quick.py").write_text(SLOW.replace("sum(range(60_000))", "pass"))
    a, b = (f"{name}={{python}} -IS {tmp_path}/{name}.py {{port}}" for name in ("quick", "slow"))
    return a, b


def written(folder: Path) -> tuple[dict[str, Path], list[str]]:
    """Files of a verdict, and the options that name them."""
    paths = {kind: folder / f"verdict.{kind}" for kind in ("json", "csv", "junit")}
    return paths, [word for kind, path in paths.items() for word in (f"--{kind}", str(path))]


def test_a_run(
    tmp_path: Path,
    lab: Callable[..., int],
    pair: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One of both takes several times as long; the machine may be as busy as it likes."""
    monkeypatch.setattr("loadtests.measure.disturbance.BUSY", math.inf)
    (a, b), (paths, files) = pair, written(tmp_path)
    raw = tmp_path / "results.jsonl"
    words = ("--seconds", "0.1", "--rounds", "8", "--within", "600", "--output", str(raw), *files)
    code = lab("compare", a, b, *words, "--fail-if", "slower", "--fail-if", "cpu > 1.5 * base")
    assert code == 3
    summary = json.loads(paths["json"].read_text())
    assert summary["verdict"] == "slower"
    assert [one["outcome"] for one in summary["conditions"]] == [HOLDS, HOLDS]
    assert summary["quantities"][0]["low"] > 1.5
    assert len(paths["csv"].read_text().splitlines()) == 1 + len(QUANTITIES)
    suite = ElementTree.parse(paths["junit"]).getroot()
    assert suite.attrib["failures"] == "2"
    assert "slow against quick" in raw.with_suffix(".html").read_text()
    capsys.readouterr()
    # The same again, from what is stored.
    page = tmp_path / "page.html"
    assert lab("compare", str(raw), "--page", str(page)) == 0
    assert "slow uses" in page.read_text()
    assert "slow uses" in capsys.readouterr().out
    [section] = report.sections(store.load([raw]))
    assert isinstance(section, Section)
    assert "more CPU" in section.answer
    assert "verdict-percentiles" in [part.name for part in section.parts]


def test_a_run_that_is_disturbed(
    tmp_path: Path,
    lab: Callable[..., int],
    pair: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Others use more of the machine than nothing in each round."""
    monkeypatch.setattr("loadtests.measure.disturbance.BUSY", -1)
    (a, b), (paths, files) = pair, written(tmp_path)
    raw = tmp_path / "results.jsonl"
    words = ["--seconds", "0.1", "--within", "600", "--metric", "rate", "--output", str(raw)]
    assert lab("compare", a, b, *words, *files, "--strict") == 4
    suite = ElementTree.parse(paths["junit"]).getroot()
    assert (suite.attrib["failures"], suite.attrib["skipped"]) == ("1", "0")
    said, log = capsys.readouterr()
    assert "In all 4 disturbed rounds quick was ahead: requests of slow 0" in said
    assert "ended early: others disturbed all of 4 rounds" in said
    assert report.CALMER in said
    assert "round 4  disturbed, does not count" in log
    [told] = json.loads(paths["json"].read_text())["quantities"]
    assert (told["estimate"], told["low"], told["high"]) == (None, None, None)
    assert len(told["disturbed_rounds"]) == 4
    assert ",,,," in paths["csv"].read_text()
    [section] = report.sections(store.load([raw]))
    assert [type(part) for part in section.parts] == [Table]
    assert "All rounds were disturbed" in section.text[-1]
    assert section.answer.startswith(said.splitlines()[0])


def test_a_server_that_fails_later(
    tmp_path: Path,
    lab: Callable[..., int],
    pair: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In the second round: what was measured is told, and the exit code is 1."""
    taken, sample = iter(range(6)), rounds.Rounds._sample

    def failing(self: rounds.Rounds, side: Any) -> dict[str, Any]:
        if next(taken) == 5:
            raise ServerFailure("requests failed (1 × timeout): it said:\n  \x1b[1mno")
        return sample(self, side)

    monkeypatch.setattr("loadtests.verdict.rounds.Rounds._sample", failing)
    (a, b), (paths, files) = pair, written(tmp_path)
    raw = tmp_path / "results.jsonl"
    words = ["--seconds", "0.1", "--within", "600", "--output", str(raw), *files]
    assert lab("compare", a, b, *words, "--fail-if", "slower") == 1
    suite = ElementTree.parse(paths["junit"]).getroot()
    assert (suite.attrib["errors"], suite.attrib["tests"]) == ("1", "1")
    assert "no" in (suite.findtext("testcase/error") or "")
    said, log = capsys.readouterr()
    assert re.match(r"Not to be told: (quick|slow): requests failed \(1 × timeout\), so no", said)
    assert "memory (PSS)" in said
    assert "it said" in log
    [section] = report.sections(store.load([raw]))
    assert section.answer.splitlines()[0] == said.splitlines()[0]


def test_help_tells_defaults(lab: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        lab("compare", "--help")
    said = " ".join(capsys.readouterr().out.split())
    for words in (
        "default: of two at most 40,",
        "default: of two 0.5,",
        "sure or not (default 180)",
    ):
        assert words in said


def test_paths_that_differ(lab: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    urls = "http://127.0.0.1:1/", "http://127.0.0.1:1/nothere"
    assert lab("compare", *urls, "--path", "/slow") == 1
    assert "the URL has the path /nothere, and --path says /slow" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["compare", "load"])
def test_a_server_that_does_not_start(tmp_path: Path, lab: Callable[..., int], what: str) -> None:
    path, bad = tmp_path / "verdict.xml", "sh -c 'exit 7' {port}"
    words = [f"a={bad}", f"b={bad}"] if what == "compare" else ["--command", bad]
    output = ["--output", str(tmp_path / "results.jsonl")]
    assert lab(what, *words, *output, "--junit", str(path)) == 1
    suite = ElementTree.parse(path).getroot()
    assert (suite.attrib["errors"], suite.attrib["failures"]) == ("1", "0")
    assert "exit code 7" in (suite.findtext("testcase/error") or "")
