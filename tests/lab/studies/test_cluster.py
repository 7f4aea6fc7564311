"""The study `cluster`: stored rounds, and reports of lost requests."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from loadtests.studies import cluster
from loadtests.studies.study import TINY
from tests.lab.studies.small_run import lab, stored
from tests.packages import need
from tests.support.network import hosts


def test_a_host_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("haproxy")
    with hosts():
        pass
    longest = cluster.GONE
    # It comes back as soon as it has been missed.
    monkeypatch.setattr(cluster, "GONE", 0.0)
    monkeypatch.setattr(cluster, "SETTLE", 0.3)
    with lab(tmp_path, 0.1, server_core=None, client_core=None) as small:
        options = Namespace(names=["cut"])
        (step, *_) = cluster.STUDY.plan(small, TINY, cluster.SETUPS, options)
        assert (step.server.name, step.what) == ("HAProxy", "cut, round 1 of 1, HAProxy")
        said = step.action()
    figures = {figure["name"]: figure["value"] for figure in stored(small).figures}
    assert f"{figures['requests']:,} answered" in said
    failed = ("that it had in hand", "on the way to it", "otherwise")
    assert figures["failed"] == sum(figures[f"failed {how}"] for how in failed)
    assert figures["failed otherwise"] == 0
    assert 0 < figures["noticed after"] < longest
    assert figures["longest"] > figures["p99"] > figures["p50"] > 0
