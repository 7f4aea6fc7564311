"""The study `bench`: parsing, medians and ratios, reports, and one tiny real run."""

from __future__ import annotations

import gzip
import lzma
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from loadtests import store
from loadtests.clients import adverse, external, program
from loadtests.clients.connection import Connection, request_bytes
from loadtests.clients.load import Job, Load
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import resources
from loadtests.reporting import markdown, promises
from loadtests.reporting.model import Table
from loadtests.servers import registry
from loadtests.servers.application import Application, expected
from loadtests.servers.running import Running
from loadtests.stats.results import Results, Spread, spread
from loadtests.studies import command, engine
from loadtests.studies.bench import scenarios
from loadtests.studies.bench.study import SHOW
from loadtests.studies.endure import MODES as ENDURING
from loadtests.studies.endure import STUDY as ENDURE
from loadtests.studies.endure import TINY as ENDURE_TINY
from tests.lab.studies.small_run import lab, stored
from tests.packages import need
from tests.testkit.client import HANG
from tests.testkit.server import wait_for

#: A number that no process has.
ENDED = 2**22 - 1

WRK_OUTPUT = """\
Running 1s test @ http://127.0.0.1:18099/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   409.63us   51.93us   1.77ms   94.93%
    Req/Sec   156.91k     3.65k  160.14k    90.91%
  171717 requests in 1.10s, 24.73MB read
  Socket errors: connect 0, read 3, write 0, timeout 0
Requests/sec: 156106.36
Transfer/sec:     22.48MB
loadtests {"requests": 171717, "microseconds": 1100000, "bytes": 25931267, "mean_us": 409, \
"p50_us": 402, "p99_us": 640, "max_us": 1772, "connect": 0, "read": 3, "write": 0, "status": 0, \
"timeout": 0}
"""


def sample(server: str, number: int, cpu: float, **more: Any) -> store.Record:
    return {
        "record": "sample",
        "run": "r",
        "experiment": "cost",
        "scenario": "hello-64",
        "server": server,
        "round": number,
        "cpu_us": cpu,
        "rate": 1e6 / cpu,
        **more,
    }


class TestClient:
    def test_reads_the_line_of_our_script(self) -> None:
        load = program.parse(WRK_OUTPUT, cpu_seconds=0.55)
        assert load.requests == 171717
        assert load.rate == pytest.approx(156106.4, abs=0.1)
        assert (load.p50_us, load.p99_us, load.max_us) == (402, 640, 1772)
        assert load.errors == {"read": 3}
        assert load.busy == pytest.approx(0.5)


class TestMeasure:
    def test_a_session_and_its_cpu_time(self) -> None:
        program = "print(end='x', flush=True); sum(range(10**9))"
        with subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True
        ) as process:
            assert process.stdout
            assert process.stdout.read(1) == b"x"
            processes = resources.session_processes(process.pid)
            assert processes == [process.pid]
            before = resources.cpu_seconds(processes)
            wait_for(lambda: resources.cpu_seconds(processes) > before, "CPU time of the process")
            used = resources.memory(processes)
            process.kill()
        assert 0 < used.uss <= used.pss <= used.rss
        assert used.processes == len(processes)

    def test_a_process_that_has_ended(self) -> None:
        with pytest.raises(ServerFailure, match="ended"):
            resources.cpu_seconds([ENDED])

    @pytest.mark.parametrize(
        "count", [lambda some: resources.memory(some).rss, resources.descriptors]
    )
    def test_what_is_held_by_those_that_are_left(self, count: Callable[[list[int]], int]) -> None:
        assert count([ENDED, os.getpid()]) > 0
        with pytest.raises(ServerFailure, match="ended"):
            count([ENDED])


class TestResults:
    def test_spread(self) -> None:
        assert spread([]) is None
        assert spread([3.0, 1.0, 9.0]) == Spread(3.0, 1.0, 9.0, 3)

    def test_ratios_are_formed_within_a_round(self) -> None:
        # The machine was half as fast in the second round: the ratio does not move.
        floor = [sample("floor", number, cpu) for number, cpu in enumerate((4.0, 8.0))]
        single = [sample("poorhttp single", n, cpu) for n, cpu in enumerate((5.0, 10.0, 77.0))]
        results = Results([*floor, *single])
        found = results.ratio("hello-64", "poorhttp single", "floor", "cpu_us")
        assert found == Spread(1.25, 1.25, 1.25, 2)

    def test_best_peer_is_neither_ours_nor_the_floor(self) -> None:
        costs = {"floor": 1.0, "poorhttp single": 2.0, "bjoern": 4.0, "fastwsgi": 3.0}
        results = Results([sample(server, 0, cpu) for server, cpu in costs.items()])
        assert results.best_peer("hello-64", "cpu_us") == "fastwsgi"
        assert results.best_peer("hello-64", "rate", highest=True) == "fastwsgi"
        assert results.best_peer("hello-1", "cpu_us") is None


class TestPromises:
    def test_samples_of_bench_count_for_show(self) -> None:
        run = {"record": "run", "run": "r", "command": "python -m loadtests show cost"}
        other = {"record": "run", "run": "b", "command": "python -m loadtests bench"}
        bench = {"run": "b", "experiment": "bench"}
        seen = {"client_busy": 0.5, "errors": {}}
        records = [run, other, sample("floor", 0, 4.0, **bench)]
        records += [sample("poorhttp single", 0, 5.0, **bench), sample("floor", 0, 1.0, **seen)]
        section = command.sections(Results(records), [SHOW])[0]
        assert section.title == "Promised and measured"
        assert "1.25 × (1.25 – 1.25)" in markdown.tables([section])


class TestStore:
    def test_appends_and_loads(self, tmp_path: Path) -> None:
        path = tmp_path / "deep" / "results.jsonl"
        for run in ("first", "second"):
            writing = store.Store(path, run)
            writing.add("missing", server="x", reason="µ")
            writing.close()
        assert [record["run"] for record in store.load([path])] == ["first", "second"]

    def test_a_run_that_was_cut_off(self, tmp_path: Path) -> None:
        path = tmp_path / "results.jsonl"
        path.write_text('{"record": "missing", "run": "r"}\n{"record": "sam')
        assert len(store.load([path])) == 1

    @pytest.mark.parametrize("packer", [lzma, gzip])
    def test_what_was_compressed(self, tmp_path: Path, packer: Any) -> None:
        path = tmp_path / f"results.jsonl.{'xz' if packer is lzma else 'gz'}"
        packed = packer.compress('{"record": "missing", "run": "µ"}\n'.encode())
        path.write_bytes(packed)
        assert store.load([path]) == store.load([path.with_suffix("")])
        assert store.load([path])[0]["run"] == "µ"
        path.write_bytes(packed[:-9])
        with pytest.raises(LabError, match="only a part"):
            store.load([path])
        with pytest.raises(LabError, match="not compressed only"):
            store.Store(path, "r")

    def test_what_is_no_result(self, tmp_path: Path) -> None:
        path = tmp_path / "results.jsonl"
        path.write_text("nonsense\n{}\n")
        with pytest.raises(LabError, match=r"results\.jsonl:1: not a JSON object"):
            store.load([path])
        path.write_text("{}\n")
        with pytest.raises(LabError, match=r"results\.jsonl:1: not a record"):
            store.load([path])
        with pytest.raises(LabError, match="No such file"):
            store.load([tmp_path / "absent"])


class TestFloor:
    """Real sockets, the real program, our own client."""

    @pytest.fixture
    def running(self) -> Iterator[Running]:
        with Running(registry.FLOOR, scenarios.HELLO) as running:
            yield running

    def test_every_request_has_its_answer_however_it_is_cut(self, running: Running) -> None:
        request = request_bytes("/", scenarios.BROWSER_HEADERS)
        with Connection(running.port) as connection:
            assert connection.ask(request, 100) == [running.answer] * 100
            for byte in request[:-1]:
                connection.send(bytes([byte]))
            assert connection.ask(request[-1:]) == [running.answer]

    def test_bodies_are_skipped(self) -> None:
        body = scenarios.POSTED
        request = request_bytes("/", body=body)
        with (
            Running(registry.FLOOR, scenarios.ECHO, request=request, body=body) as running,
            Connection(running.port) as connection,
        ):
            assert [answer.body for answer in connection.ask(request, 20)] == [body] * 20

    def test_nothing_is_left_running(self, running: Running) -> None:
        processes = running.processes()
        assert len(processes) == 1
        running.stop()
        assert not psutil.pid_exists(processes[0])

    def test_a_wrong_answer_is_noticed(self, tmp_path: Path) -> None:
        (tmp_path / "fickle.py").write_text(
            "def application(environ, start_response):\n"
            "    start_response('200 OK', [('Content-Type', 'text/plain')])\n"
            "    return [b'right']\n"
        )
        fickle = Application(str(tmp_path), "fickle")
        assert expected(fickle, "/", b"").body == b"right"
        with pytest.raises(ServerFailure, match="its answer is wrong: status 200 and 5 bytes"):
            _check_against(fickle)

    def test_a_server_that_ends_at_once(self) -> None:
        broken = registry.Server("broken", "#000000", "{python} -c raise~SystemExit('no~reason')")
        with (
            pytest.raises(ServerFailure, match="exit code 1: it said: no reason"),
            Running(broken, scenarios.HELLO),
        ):
            pass


MODES = registry.named(ENDURING[:2])


class TestEndurance:
    """The experiments in small, against the real server; the live client is a plain one."""

    @pytest.fixture(autouse=True)
    def live_client(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def drive(job: Job, _: int | None) -> Load:
            with Connection(job.port, timeout=HANG) as connection:
                answers = connection.ask(request_bytes(job.target), 100)
            assert {len(answer.body) for answer in answers} == {int(job.target[1:])}
            return Load(len(answers), 0.1, 1, 1, 1, 1, 1, {}, 0.1)

        monkeypatch.setattr(external, "wrk", drive)

    def measure(self, experiment: str, tmp_path: Path) -> Results:
        options = Namespace(names=[experiment], servers=None)
        with lab(tmp_path, 0.1) as small:
            for step in ENDURE.plan(small, ENDURE_TINY, [MODES[0]], options):
                assert step.action()
        return stored(small)

    def test_dead(self, tmp_path: Path) -> None:
        results = self.measure("dead", tmp_path)
        assert len(results.samples) == 2 * len(scenarios.SIZED)
        (table,) = ENDURE.report(results)[0].parts
        assert isinstance(table, Table)
        assert [row[0] for row in table.rows] == [f"{MODES[0].name}, 50 dead"] * 3

    def test_who_drips_is_closed_and_comes_again(self, tmp_path: Path) -> None:
        results = self.measure("drip", tmp_path)
        for what in ("heads", "bodies"):
            closed = results.figure("drip", MODES[0].name, f"{what} closed")
            assert closed == Spread(1, 1, 1, 1)
        found = promises.table(ENDURE.name, ENDURE.promises, results)
        assert found
        (row,) = (one for one in found.rows if "of a body each second that were" in str(one[0]))
        assert row[1:3] == ("≥ 1 ×", "1.00 × (1.00 – 1.00)")

    def test_who_does_not_read_is_closed(self) -> None:
        # Not as an experiment: that needs them to stay while it measures, however slow we are.
        impatient = replace(MODES[0], command=f"{MODES[0].command} --write-timeout 0.3")
        with (
            Running(impatient, scenarios.DOCUMENTS, target="/128") as running,
            adverse.AdverseClients("stalled", running.port, 6) as stalled,
        ):
            wait_for(lambda: stalled.state().never == 0, "the end of those who do not read")
            assert stalled.state().told == {"200": 6}


def _check_against(application: Application) -> None:
    """Starts the floor with this application's answer, then expects the answer of another one."""
    running = Running(registry.FLOOR, application)
    running.answer = expected(scenarios.HELLO, "/", b"")
    with running:
        pass


def test_a_tiny_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts and plausibility of a real run, not its speed."""
    need("wrk")
    with lab(tmp_path, 0.3) as small:
        planned = engine.steps(small, scenarios.asked([registry.FLOOR], ["hello-1"]))
        engine.run(small, planned, "test")
    run, measured, done = stored(small).records
    assert done["what"] == planned[0].what
    assert run["machine"]["cores"] >= 1
    assert measured["server"] == "floor"
    assert measured["requests"] > 0
    assert 0 < measured["seconds"] < HANG
    assert measured["rate"] == pytest.approx(measured["requests"] / measured["seconds"], rel=0.01)
    assert 0 < measured["p50_us"] <= measured["p99_us"] <= measured["max_us"]
    assert measured["errors"] == {}
    assert measured["cpu_us"] > 0
    assert 0 < measured["uss"] <= measured["pss"] <= measured["rss"]
    assert "hello-1, round 1, floor" in capsys.readouterr().err
