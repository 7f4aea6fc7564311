"""The study `balance`: its simulation, its report, and a small run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loadtests.studies.balance import study
from loadtests.studies.balance.cores import Costs, expected, limit, simulated
from loadtests.studies.balance.simulation import COMPUTING, KEPT, POLICIES, Outcome, simulate
from loadtests.studies.balance.study import SHARED, STUDY
from tests.lab.studies.small_run import chosen, run, tables
from tests.packages import need

ALL, FEWEST, FIRST, NEXT, HASH, OURS = POLICIES
ARRIVALS = 4_000


@pytest.mark.parametrize("load", [KEPT, COMPUTING])
def test_a_simulation_can_be_repeated(load: str) -> None:
    assert simulate(OURS, load, 16, ARRIVALS) == simulate(OURS, load, 16, ARRIVALS)


def test_kept_connections() -> None:
    found = {policy: simulate(policy, KEPT, 32, ARRIVALS) for policy in POLICIES}
    # Nobody is ever busy, so the first of the queue takes them all.
    assert found[FIRST] == Outcome(32, 1, 0)
    assert found[ALL].woken == found[FEWEST].woken == 32
    assert found[FEWEST].busiest < found[OURS].busiest < found[NEXT].busiest
    assert 4 < found[OURS].woken < 8


def test_computing_requests() -> None:
    found = {policy: simulate(policy, COMPUTING, 32, ARRIVALS) for policy in POLICIES}
    # They wait behind a request although another worker is idle.
    assert found[HASH].waited > 2
    assert all(one.waited < 1 for policy, one in found.items() if policy != HASH)
    assert found[OURS].woken < 6 < found[FEWEST].woken


def test_a_small_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("wrk")
    first = {place: scenarios[:1] for place, scenarios in study.SCENARIOS.items()}
    monkeypatch.setattr(study, "SCENARIOS", first)
    servers = [SHARED[2], SHARED[4], *chosen(STUDY, OURS)]
    results = run(STUDY, tmp_path, servers)
    assert not results.failures
    found = tables(STUDY.report(results))
    assert list(found) == [f"balance-{name}" for name in STUDY.experiments]
    assert len(found["balance-workers"].rows) == len(study.PLACES)
    assert [row[0] for row in found["balance-bursts"].rows] == [SHARED[4].name]
    # One connection has one worker, which is four times the mean.
    assert set(results.values("bursts", SHARED[4].name, "connections, 1", "requests, 1")) == {4}
    assert [row[0] for row in found["balance-wakeups"].rows] == [SHARED[2].name, SHARED[4].name]


@pytest.mark.parametrize("checks", [None, 2])
def test_the_model_of_many_cores_agrees_with_its_simulation(checks: float | None) -> None:
    costs = replace(Costs(), checks=checks)
    for workers in (1, 2, 8, 64):
        rate = 0.5 * limit(costs, workers)[1]
        model, found = expected(costs, workers, rate), simulated(costs, workers, rate, 2_000)
        assert found.workers == pytest.approx(model.workers, rel=0.15)
        assert found.lock == pytest.approx(model.lock, rel=0.1)
        assert found.main == pytest.approx(model.main, rel=0.3, abs=0.001)


def test_what_breaks_first() -> None:
    """With a wake-up for each worker the main process would have no time for 256 of them."""
    each = replace(Costs(), checks=None)
    assert limit(each, 256) == ("main process", 0)
    assert simulated(each, 256, 1_000, 10).main > 0.9
    assert [limit(Costs(), workers)[0] for workers in (8, 64, 256)] == ["workers"] * 3
    assert expected(Costs(), 256, 0).main < 0.05
