"""The study `cluster`: stored rounds, and reports of lost requests."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from loadtests import store
from loadtests.studies.cluster import study as experiments
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
