"""Saturation: log messages while all threads are busy, and the watchdog meanwhile."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from poorhttp.plugins.monitor.saturation import Saturation
from poorhttp.process.control_channel import ControlChannel
from poorhttp.supervisor.worker_handle import WorkerHandle
from tests.support.each_value import DIFFERENT, each_value
from tests.support.health_probe import wait_status
from tests.testkit.client import HANG
from tests.testkit.process import children
from tests.testkit.server import Server, patched, wait_for

BUSY = "tests/apps/busy.py"

SATURATED = re.compile(
    r"warning: worker (\d+): (?:all 2 threads have|the thread that runs requests has) been busy "
    r"for \d+\.\d s, and (\d+) requests? waits?(?:, the longest for \d+\.\d s)?; "
    r"the oldest in flight is request 1 GET /hold\?(\S+), for \d+\.\d s at least\n"
)
OVER = re.compile(r"info: worker \d+: a thread is free again after \d+\.\d s\n")


@contextmanager
def held(server: Server, gate: Path) -> Iterator[None]:
    """Every thread has a request, until the end of this context."""
    with ExitStack() as stack:
        holding = []
        for number in range(1, 3 if server.mode == "threading" else 2):
            holding.append(stack.enter_context(server.connect()))
            holding[-1].send_request("GET", f"/hold?{gate}")
            server.wait_log(f"holds {gate}\n", number)
        yield
        gate.touch()
        for connection in holding:
            assert connection.response().status == 200


def start(mode: str, *options: str, env: dict[str, str] | None = None) -> Server:
    few = ("--workers", "1", "--threads", "2" if mode == "threading" else "1")
    launcher = patched("poorhttp.plugins.monitor.saturation", LONG=0.4, SHORTEST=0.4)
    return Server(BUSY, mode, *few, *options, env=env, launcher=launcher)


@pytest.mark.parametrize(
    ("mode", "kind"), each_value(DIFFERENT, ["new", "kept"]), indirect=["mode"]
)
def test_waiting_requests_are_logged(mode: str, tmp_path: Path, kind: str) -> None:
    with start(mode) as server:
        waiting = [server.connect() for _ in range(5)] if kind == "kept" else []
        gate = tmp_path / "gate"
        with held(server, gate):
            waiting = waiting or [server.connect() for _ in range(5)]
            for connection in waiting:
                connection.send_request("GET", "/waits")
            wait_for(lambda: SATURATED.search(server.log()), "the line")
            found = SATURATED.search(server.log())
            assert found
            assert found.groups() == (str(children(server.process.pid)[0]), "5", str(gate))
        for connection in waiting:
            assert connection.response().body == b"/waits 0\n"
        wait_for(lambda: OVER.search(server.log()), "the line of the end")
        assert len(SATURATED.findall(server.log())) == len(OVER.findall(server.log())) == 1


def wait_signs(systemd: socket.socket, count: int) -> None:
    while count:
        count -= systemd.recv(4096) == b"WATCHDOG=1"


def test_busy_threads_are_no_reason_where_nobody_waits(mode: str, tmp_path: Path) -> None:
    """Nothing is logged until somebody waits, and systemd hears that all is well all the time."""
    env = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"}
    systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    systemd.settimeout(HANG)
    systemd.bind(env["NOTIFY_SOCKET"])
    with systemd, start(mode, env=env) as server:
        with held(server, tmp_path / "gate"), server.connect() as connection:
            # Each is sent a tenth of a second after the one before, at least.
            wait_signs(systemd, 25)
            assert not SATURATED.search(server.log())
            connection.send_request("GET", "/waits")
            # With the others, ten times as long as systemd would wait.
            wait_signs(systemd, 15)
            server.wait_log("been busy for")
        assert "no worker answers" not in server.log()


def test_readiness_is_logged(mode: str, tmp_path: Path, folder: Path) -> None:
    admin = str(folder / "admin")
    why = "all threads of the worker run requests, and no worker answers"
    with start(mode, "--admin", f"unix:{admin}") as server:
        with held(server, tmp_path / "gate"), server.connect() as connection:
            connection.send_request("GET", "/waits")
            assert wait_status(admin, 503) == f"not ready: {why}"
            server.wait_log(f"warning: /-/ready is 503 from now on: {why}\n")
        wait_status(admin, 200)
        server.wait_log("info: /-/ready is 200 again\n")
        assert server.log().count("/-/ready is") == 2


class Status:
    """Of a worker that begins a request between any two checks."""

    def __init__(self) -> None:
        self.begun = 0
        self.checks = 0

    def counts(self) -> tuple[int, int]:
        self.begun, self.checks = self.begun + 1, self.checks + 1
        return self.begun, 0

    def in_flight(self, _: bool) -> dict[int, str]:
        return {}

    def is_full(self) -> bool:
        return False


def test_all_workers_are_checked_at_the_same_moments() -> None:
    """One wakeup of the main process is for all workers, whenever each has become full."""
    workers = [WorkerHandle(slot, slot, ControlChannel(), balances=True) for slot in range(16)]
    statuses = [Status() for _ in workers]
    pool = SimpleNamespace(
        workers=dict(enumerate(workers)), scoreboard=SimpleNamespace(status=statuses.__getitem__)
    )
    main: Any = SimpleNamespace(generations=SimpleNamespace(serving=[pool]))
    saturation = Saturation(main)
    for number, worker in enumerate(workers):
        worker.full = True
        saturation.tick(100 + number / 20)
    wakeups = 0
    while (now := saturation.due()) < 110:
        saturation.tick(now)
        wakeups += 1
    assert all(status.checks >= 9 for status in statuses)
    assert wakeups <= 2 * 10
    for worker in workers:
        worker.channel.close()
        worker.channel.close_child_end()
