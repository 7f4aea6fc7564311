"""The study `proxies`: bursts, setups, tables, and a small run of each kind."""

from __future__ import annotations

import socket
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from loadtests import store
from loadtests.clients.load import Load
from loadtests.clients.native import fetch
from loadtests.errors import ServerFailure
from loadtests.servers import proxies as setups
from loadtests.servers.pages import TABLE
from loadtests.studies import engine, proxies
from loadtests.studies.bench.scenarios import Fetched
from loadtests.studies.study import TINY, Study
from tests.lab.studies import small_run
from tests.lab.studies.small_run import stored
from tests.packages import need


def test_no_more_than_six_bursts_wait() -> None:
    """At a port where connections are made and nothing is answered."""
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as listener:
        load = fetch.drive(listener.getsockname()[1], 1, 2, [["/"]], every=0.01, keep=False)
    # Who cannot be sent any more counts as well.
    assert load.errors["timeout"] > 6 * 2


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[engine.Lab]:
    # What is answered by nobody in so short a time is measured for longer.
    with small_run.lab(tmp_path, 0.05) as small:
        yield small


def planned(study: Study, lab: engine.Lab, name: str) -> list[engine.Step]:
    """The steps of a study with one setup."""
    chosen = [setup for setup in study.servers() if setup.name == name]
    return study.plan(lab, TINY, chosen, Namespace())


class TestSmallRuns:
    """Against the real programs; counts and plausibility, not speed."""

    def check(self, samples: list[store.Record]) -> None:
        for sample in samples:
            assert sample["requests"] > 0
            assert (sample["failed"], sample["errors"]) == (0, {})
            assert sample["cpu_us"] > 0
            assert sample["proxy_us"] > 0
            both = sample["cpu_us"] + sample["proxy_us"]
            assert sample["both_us"] == pytest.approx(both, abs=0.001)

    def test_the_study(self, lab: engine.Lab) -> None:
        need("nginx")
        (step,) = planned(proxies.PROXIES, lab, "nginx + 2 × Single")
        assert "serial-heavy-1 " in step.action()
        samples = stored(lab).samples
        assert [sample["scenario"] for sample in samples] == [
            f"{test}-{page}-{connections}"
            for page in ("light", "heavy")
            for test, connections in (("crowd", 100), ("serial", 1), ("parallel", 100))
        ]
        self.check(samples)
        for sample in samples:
            assert 0 < sample["answer_us"] <= sample["mean_us"]
        assert samples[2]["requests"] == 100
        assert samples[0]["processes"] >= 3

    def test_gateways(self, lab: engine.Lab) -> None:
        need("nginx", "wrk")
        (step,) = planned(proxies.GATEWAYS, lab, "poorhttp single by HTTP (kept)")
        assert step.action()
        samples = stored(lab).samples
        assert [s["scenario"] for s in samples] == [
            "pass-hello-64",
            "pass-light-64",
            "pass-heavy-64",
        ]
        self.check(samples)

    def test_a_failed_request_is_an_error(
        self, lab: engine.Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Failing(Fetched):
            def drive(self, port: int, seconds: float, core: int | None) -> Load:
                load = super().drive(port, seconds, core)
                # Without an answer yet, it is driven for longer.
                return replace(load, errors={"read": 2, "status": 1}) if load.requests else load

        scenario = Failing("failing", "", TABLE, 1, target="/light", keep=False)
        monkeypatch.setitem(proxies.SCENARIOS, "proxies", [scenario])
        step = proxies.steps(lab, "proxies", setups.studied()[:1])[0]
        with pytest.raises(ServerFailure, match="failing-1: 3 requests failed beside "):
            step.action()
        assert stored(lab).samples[0]["failed"] == 3
