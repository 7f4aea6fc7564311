"""The lab's clusters: stored rounds, and reports of lost requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadtests import store
from loadtests.choice import choose
from loadtests.errors import LabError
from loadtests.stats.results import Results
from loadtests.studies.cluster import experiments, report
from loadtests.studies.engine import Lab
from tests.packages import need
from tests.support.network import hosts


def test_a_host_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("haproxy")
    with hosts():
        pass
    longest = experiments.GONE
    # It comes back as soon as it has been missed.
    monkeypatch.setattr(experiments, "GONE", 0.0)
    monkeypatch.setattr(experiments, "SETTLE", 0.3)
    path = tmp_path / "results.jsonl"
    results = store.Store(path, "run")
    (step, *_) = experiments.steps(Lab(results, 0.1, 1, None, None), "cut", experiments.SETUPS)
    assert (step.server.name, step.what) == ("HAProxy", "cut, round 1 of 1, HAProxy")
    said = step.action()
    results.close()
    figures = {
        record["name"]: record["value"]
        for record in store.load([path])
        if record["record"] == "figure"
    }
    assert f"{figures['requests']:,} answered" in said
    failed = ("that it had in hand", "on the way to it", "otherwise")
    assert figures["failed"] == sum(figures[f"failed {how}"] for how in failed)
    assert figures["failed otherwise"] == 0
    assert 0 < figures["noticed after"] < longest
    assert figures["longest"] > figures["p99"] > figures["p50"] > 0


def results_of(**values: float) -> Results:
    """One round of each experiment with HAProxy; `values` are figures of all of them."""
    return Results(
        [
            {
                "record": "figure",
                "run": "run",
                "experiment": experiment,
                "server": "HAProxy",
                "round": 0,
                "name": name.replace("_", " "),
                "value": value,
            }
            for experiment in experiments.EXPERIMENTS
            for name, value in values.items()
        ]
    )


@pytest.mark.parametrize(("failed", "kept"), [(0, "yes"), (1, "**no**")])
def test_what_failed_is_told(failed: int, kept: str) -> None:
    found = results_of(
        requests=10,
        failed=failed,
        failed_otherwise=failed,
        last_request_that_failed_was_sent_after=failed * 2.0,
    )
    rows = [line.split(" | ") for line in report.table(found)[2:]]
    assert [row[4] for row in rows] == [kept] * 4 + ["yes"]
    (reload, replace, cut) = report.comparisons(found)
    assert reload[4].startswith(f"| HAProxy | 1 | 10 | {failed} |")
    assert replace[0] == "### Three hosts are replaced in turn (TERM, then a new server)"
    assert f" | {failed} | " in cut[4]


def test_a_round_that_came_to_nothing_is_told() -> None:
    found = results_of(requests=1, failed=0)
    found.failures.append({"server": "HAProxy", "what": "cut, round 1 of 1", "reason": "it died"})
    (row,) = [line for line in report.table(found) if "came to nothing" in line]
    assert "**no**" in row


def test_names() -> None:
    assert [setup.name for setup in choose("setup", experiments.SETUPS, ["nginx"])] == [
        "nginx",
        "nginx, 20 ms away",
    ]
    with pytest.raises(LabError, match=r"no setup is called 'x'. There are: HAProxy; "):
        choose("setup", experiments.SETUPS, ["x"])
