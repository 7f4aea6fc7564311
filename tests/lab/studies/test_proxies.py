"""The study `proxies`: bursts, setups, tables, and a small run of each kind."""

from __future__ import annotations

import json
import re
import socket
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from loadtests import __main__, store
from loadtests.arguments import choose
from loadtests.clients.load import Load
from loadtests.clients.native import fetch
from loadtests.errors import LabError, ServerFailure
from loadtests.measure.cpu_affinity import cores
from loadtests.reporting import markdown, promises
from loadtests.reporting.model import Section, Table
from loadtests.servers import proxies as setups
from loadtests.servers import registry
from loadtests.servers.pages import TABLE
from loadtests.servers.registry import Server, proxied
from loadtests.servers.running import Running
from loadtests.stats.results import Results
from loadtests.studies import catalogue, engine
from loadtests.studies.bench.scenarios import HELLO, Fetched
from loadtests.studies.proxies import experiments
from loadtests.studies.proxies import study as proxies
from loadtests.studies.study import TINY, Study
from tests.packages import need
from tests.testkit.client import HANG


@pytest.fixture
def silent() -> Iterator[int]:
    """A port where connections are made and nothing is answered."""
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as listener:
        yield listener.getsockname()[1]


class TestBursts:
    def test_so_many_at_once_again_and_again(self) -> None:
        with Running(registry.FLOOR, HELLO) as running:
            load = fetch.drive(running.port, HANG, 2, [["/a"]], requests=7, every=0.05, keep=False)
        assert (load.requests, load.errors) == (7, {})
        # The fourth burst has the seventh request.
        assert load.seconds >= 0.15
        assert 0 < load.answer_us <= load.mean_us

    def test_what_is_not_answered_by_the_end(self, silent: int) -> None:
        load = fetch.drive(silent, 0.2, 3, [["/"]], every=10, keep=False)
        assert (load.requests, load.errors) == (0, {"timeout": 3})

    def test_no_more_than_six_bursts_wait(self, silent: int) -> None:
        load = fetch.drive(silent, 1, 2, [["/"]], every=0.01, keep=False)
        # Who cannot be sent any more counts as well.
        assert load.errors["timeout"] > 6 * 2

    def test_the_beginning_of_an_answer(self) -> None:
        with Running(registry.FLOOR, HELLO) as running:
            load = fetch.drive(running.port, HANG, 1, [["/"]], requests=100)
        assert 0 < load.answer_us <= load.mean_us


class TestSetups:
    def test_the_line_of_the_second_server(self) -> None:
        text = "# 8080 and 8081\nlisten 8000;\nserver 127.0.0.1:8080;\nserver x:8081; $host\n"
        two = "# 8080 and 8081\nlisten $port;\nserver 127.0.0.1:$first;\nserver x:$second; $$host\n"
        assert proxied.rewritten(text, 2) == two
        assert proxied.rewritten(text, 1) == "".join(two.splitlines(keepends=True)[:-1])

    @pytest.mark.parametrize("name", setups.PROXIES)
    def test_each_port_stands_once(self, name: str) -> None:
        for count in (1, 2):
            text = "".join(
                text
                for file, text in proxied.shipped(name, count).files
                if file.startswith("balanced.")
            )
            found = re.findall("[$](first|second|port)", text)
            assert sorted(found) == sorted(["port", "first", "second"][: count + 1])

    def test_no_configuration(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(proxied, "SHIPPED", tmp_path)
        with pytest.raises(LabError, match=r"proxy/nginx has no balanced\.\* configuration"):
            proxied.shipped("nginx", 1)

    def test_whoever_is_compared_is_there(self) -> None:
        for everyone in (setups.studied(), setups.GATEWAYS):
            names = [setup.name for setup in everyone]
            assert len(set(names)) == len(names)
            assert {setup.against for setup in everyone if setup.against} <= set(names)

    def test_a_beginning_stands_for_all(self) -> None:
        found = choose("server", setups.GATEWAYS, ["uWSGI 1", "poorhttp forking 2 by u"])
        assert [setup.name for setup in found] == [
            "uWSGI 1 process",
            "uWSGI 1 process (Unix)",
            "poorhttp forking 2 by uwsgi",
        ]
        with pytest.raises(LabError, match=r"'bjoern'\. There are: poorhttp single by uwsgi; "):
            choose("server", setups.GATEWAYS, ["bjoern"])

    def test_a_whole_needs_what_its_parts_need(self) -> None:
        lighttpd = next(
            setup for setup in setups.studied() if setup.name == "lighttpd + 2 × Single"
        )
        assert lighttpd.programs == ("lighttpd",)
        assert lighttpd.ours
        assert lighttpd.command.count("poorhttp serve") == 2


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[engine.Lab]:
    writing = store.Store(tmp_path / "results.jsonl", "2026-01-01")
    yield engine.Lab(writing, 0.3, 1, *cores())
    writing.close()


def stored(lab: engine.Lab) -> Results:
    return Results(store.load([lab.store.path]))


def planned(study: Study, lab: engine.Lab, name: str) -> list[engine.Step]:
    """The steps of a study with one setup."""
    chosen = [setup for setup in study.servers() if setup.name == name]
    return study.plan(lab, TINY, chosen, Namespace())


class TestSmallRuns:
    """Against the real programs; counts and plausibility, not speed."""

    def check(self, samples: list[store.Record], *, proxy: bool) -> None:
        for sample in samples:
            assert sample["requests"] > 0
            assert (sample["failed"], sample["errors"]) == (0, {})
            assert sample["cpu_us"] > 0
            assert (sample["proxy_us"] > 0) == proxy
            both = sample["cpu_us"] + sample["proxy_us"]
            assert sample["both_us"] == pytest.approx(both, abs=0.001)

    @pytest.mark.parametrize(
        "name",
        [
            pytest.param("Single", marks=pytest.mark.full),
            pytest.param("lighttpd + Single", marks=pytest.mark.full),
            "nginx + 2 × Single",
        ],
    )
    def test_the_study(self, lab: engine.Lab, name: str) -> None:
        need(*(proxy for proxy in ("lighttpd", "nginx") if name.startswith(proxy)))
        (step,) = planned(proxies.PROXIES, lab, name)
        assert "serial-heavy-1 " in step.action()
        samples = stored(lab).samples
        assert [sample["scenario"] for sample in samples] == [
            f"{test}-{page}-{connections}"
            for page in ("light", "heavy")
            for test, connections in (("crowd", 100), ("serial", 1), ("parallel", 100))
        ]
        self.check(samples, proxy=name != "Single")
        for sample in samples:
            assert 0 < sample["answer_us"] <= sample["mean_us"]
        assert samples[2]["requests"] == 100
        processes = 1 if name == "Single" else 3 if name == "lighttpd + Single" else 4
        assert samples[0]["processes"] >= processes - 1

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
        self.check(samples, proxy=True)

    def test_a_failed_request_is_an_error(
        self, lab: engine.Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Failing(Fetched):
            def drive(self, port: int, seconds: float, core: int | None) -> Load:
                load = super().drive(port, seconds, core)
                return replace(load, errors={"read": 2, "status": 1})

        scenario = Failing("failing", "", TABLE, 1, target="/light", keep=False)
        monkeypatch.setitem(experiments.SCENARIOS, "proxies", [scenario])
        step = experiments.steps(lab, "proxies", setups.studied()[:1])[0]
        with pytest.raises(ServerFailure, match="failing-1: 3 requests failed beside "):
            step.action()
        assert stored(lab).samples[0]["failed"] == 3

    def test_no_answer_at_all(self, lab: engine.Lab) -> None:
        nowhere = Fetched("lost", "", TABLE, 1, target="/nowhere", keep=False)
        with (
            setups.running(setups.studied()[0], TABLE, "/light", None) as running,
            pytest.raises(ServerFailure, match=r"no request was answered, \d+ failed"),
        ):
            experiments.take(lab, "proxies", 0, running, nowhere)

    def test_the_whole_run_ends_in_an_error(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        need("wrk")

        def refuse() -> str:
            raise ServerFailure("3 requests failed")

        nobody = Server("nobody", "", "true")
        planned = [
            engine.Step(nobody, "sound", lambda: "well"),
            engine.Step(nobody, "failing", refuse),
        ]
        study = replace(proxies.PROXIES, plan=lambda *_: planned)
        monkeypatch.setitem(catalogue.STUDIES, "proxies", study)
        monkeypatch.setattr("os.sched_setaffinity", lambda process, chosen: None)
        arguments = ["loadtests", "proxies", "--output"]
        monkeypatch.setattr(sys, "argv", [*arguments, str(tmp_path / "failing.jsonl")])
        assert __main__.main() == 1
        assert "3 requests failed" in capsys.readouterr().err
        planned.pop()
        monkeypatch.setattr(sys, "argv", [*arguments, str(tmp_path / "sound.jsonl")])
        assert __main__.main() == 0


def sample(scenario: str, server: str, **fields: float) -> store.Record:
    return {
        "record": "sample",
        "run": "2026-01-01",
        "experiment": "gateways" if scenario.startswith("pass-") else "proxies",
        "scenario": scenario,
        "server": server,
        "round": 0,
        "errors": {},
        "requests": 1000,
        "failed": 0,
        "seconds": 1.0,
        "client_busy": 0.5,
        "server_busy": 0.4,
        "proxy_busy": 0.0,
        "others_busy": 0.0,
        "answer_us": 500.0,
        "mean_us": 1000.0,
        "p50_us": 10,
        "p99_us": 20,
        "cpu_us": 10.0,
        "proxy_us": 0.0,
        "rate": 900.0,
        "pss": 3 * 2**20,
        **fields,
    }


@pytest.fixture
def results() -> Results:
    found = Results(
        [
            sample("serial-light-1", "nginx + 2 × Single", proxy_us=20.0, failed=3, mean_us=1250.0),
            sample("serial-light-1", "Single"),
            sample(
                "crowd-light-100", "nginx + Single", proxy_us=5, server_busy=0.4, proxy_busy=0.58
            ),
            sample("crowd-light-100", "Single", client_busy=0.99, rate=950.0),
            sample("pass-hello-64", "poorhttp single by uwsgi", cpu_us=6.0, proxy_us=9.0),
            sample("pass-hello-64", "poorhttp single by uwsgi (Unix)", cpu_us=5.0, proxy_us=9.0),
            sample("pass-hello-64", "poorhttp single by HTTP (kept)", cpu_us=2.0, proxy_us=9.0),
            sample("pass-hello-64", "uWSGI 1 process", cpu_us=8.0, proxy_us=9.0),
            sample("pass-hello-64", "uWSGI 1 process (Unix)", cpu_us=4.0, proxy_us=9.0),
        ]
    )
    machine = {"cpu": "x", "cores": 2, "virtual": True, "memory": 2**30, "kernel": "6"}
    machine |= {"python": "CPython", "client": "wrk", "versions": {"nginx": "1.22.1"}}
    run = {"record": "run", "run": "2026-01-01", "command": "python -m loadtests proxies"}
    found.runs = [{**run, "commands": {}, "machine": machine, "seconds": 1.0}]
    return found


class TestReport:
    def test_promises(self, results: Results) -> None:
        tables = [
            promises.table(study.name, study.promises, results)
            for study in (proxies.PROXIES, proxies.GATEWAYS)
        ]
        assert [row[1:] for table in tables if table for row in table.rows] == [
            (
                "≤ 0",
                "3 (3 – 3)",
                "nginx + 2 × Single, serial-light-1; worst of 4",
                "**no**",
                "`python -m loadtests proxies`",
            ),
            (
                "≤ 1 ×",
                "1.25 × (1.25 – 1.25)",
                "single by uwsgi (Unix); worst of 2",
                "**no**",
                "`python -m loadtests gateways`",
            ),
            (
                "≤ 1 ×",
                "0.25 × (0.25 – 0.25)",
                "single by HTTP (kept)",
                "yes",
                "`python -m loadtests gateways`",
            ),
        ]

    def test_tests_of_the_study(self, results: Results) -> None:
        told = tables(proxies.PROXIES.report(results))
        serial = told["Serial test: light"][0]
        alike = ["900", "0.020", "10.0"]
        assert cells(serial) == [
            ["Single", "1.000", "0.500", "2,000", "1,000", *alike, "–", "0 of 1,000"],
            ["nginx + 2 × Single", "1.250", "0.500", "2,000", "800", *alike, "20.0", "3 of 1,003"],
        ]
        crowd = told["100 clients, each asking again as soon as it is answered: light"][0]
        assert [row[-3:] for row in cells(crowd)] == [
            ["3.0", "client (40 + 0 + 99 %)", "0 of 1,000"],
            ["3.0", "proxy and servers (40 + 58 + 50 %)", "0 of 1,000"],
        ]

    def test_gateways(self, results: Results) -> None:
        told = proxies.GATEWAYS.report(results)
        table = tables(told)["nginx before ours and before uWSGI, 64 connections"][0]
        assert ["**poorhttp single by uwsgi**", "6.00", "0.75", "9.0", "900"] in cells(table)
        assert cells(table)[-1] == ["uWSGI 1 process", "8.00", "–", "9.0", "900"]
        assert any("uwsgi_param CONTENT_TYPE $content_type;" in str(one.parts) for one in told)

    def test_into_a_page(
        self, results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each study at its own place."""
        stored = tmp_path / "results.jsonl"
        other = {**results.runs[0], "command": "python -m loadtests gateways", "run": "2026-01-02"}
        records = [*results.runs, other, *results.samples]
        stored.write_text("".join(json.dumps(record) + "\n" for record in records))
        page = tmp_path / "page.md"
        places = "".join(
            f"<!-- {one} -->\n<!-- end of {one} -->\n" for one in ("proxies", "gateways")
        )
        page.write_text(f"Before.\n{places}After.\n")
        monkeypatch.setattr(sys, "argv", ["loadtests", "report", str(stored), "--into", str(page)])
        monkeypatch.setattr("signal.signal", lambda *_: None)
        for _ in range(2):
            assert __main__.main() == 0
        text = page.read_text()
        assert text.count("### Serial test: light") == 1
        assert text.startswith("Before.\n")
        assert text.endswith("After.\n")


def tables(sections: list[Section]) -> dict[str, list[Table]]:
    """Those of each section."""
    return {one.title: [part for part in one.parts if isinstance(part, Table)] for one in sections}


def cells(table: Table) -> list[list[str]]:
    """The cells of a table as it is written, without its head."""
    lines = markdown.lines(table).splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
