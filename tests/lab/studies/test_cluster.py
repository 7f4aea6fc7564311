"""The study `cluster`: stored rounds, and reports of lost requests."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from loadtests import store
from loadtests.arguments import choose
from loadtests.errors import LabError
from loadtests.reporting import promises
from loadtests.reporting.model import Section, Table
from loadtests.stats.results import Results
from loadtests.studies.cluster import experiments
from loadtests.studies.cluster.study import STUDY
from loadtests.studies.engine import Lab
from loadtests.studies.study import TINY
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
    (step, *_) = STUDY.plan(
        Lab(results, 0.1, 1, None, None), TINY, experiments.SETUPS, Namespace(names=["cut"])
    )
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
    table = promises.table(STUDY.name, STUDY.promises, found)
    assert table
    assert [row[4] for row in table.rows] == [kept] * 4 + ["yes"]
    reload, replace, cut, method = STUDY.report(found)
    (row,) = (dict(zip(names(told), told.rows[0], strict=True)) for told in tables(reload))
    assert (row["balancer"], row["requests"], row["rounds"]) == ("HAProxy", 10, 1)
    assert row["failed"] == failed
    assert reload.answer == f"{failed} of 10 requests failed."
    assert replace.title == "Three hosts are replaced in turn (TERM, then a new server)"
    (row,) = (dict(zip(names(told), told.rows[0], strict=True)) for told in tables(cut))
    assert row["failed otherwise"] == failed
    assert method.detail


def tables(section: Section) -> list[Table]:
    return [part for part in section.parts if isinstance(part, Table)]


def names(table: Table) -> list[str]:
    return [column.name for column in table.columns]


def test_the_longest_time_without_an_answer_ranks() -> None:
    found = results_of(requests=10, failed=0, gap=0.5)
    nginx = [{**one, "server": "nginx", "value": one["value"] / 2} for one in found.figures]
    found.figures += nginx
    reload = STUDY.report(found)[0]
    assert reload.answer.endswith("the longest time without any answer was 500 ms (HAProxy).")
    (table,) = tables(reload)
    assert [row[0] for row in table.rows] == ["nginx", "HAProxy"]
    assert table.ranking == table.columns[1].name


def test_a_round_that_came_to_nothing_is_told() -> None:
    found = results_of(requests=1, failed=0)
    found.failures.append({"server": "HAProxy", "what": "cut, round 1 of 1", "reason": "it died"})
    table = promises.table(STUDY.name, STUDY.promises, found)
    assert table
    (row,) = [row for row in table.rows if "came to nothing" in str(row[0])]
    assert row[4] == "**no**"


def test_beginnings_of_names() -> None:
    assert [setup.name for setup in choose("setup", experiments.SETUPS, ["nginx"])] == [
        "nginx",
        "nginx, 20 ms away",
    ]
    with pytest.raises(LabError, match=r"no setup is called 'x'. There are: HAProxy; "):
        choose("setup", experiments.SETUPS, ["x"])
