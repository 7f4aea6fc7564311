"""`threads = auto`: threads come with requests that wait for one, and go when they are idle."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from poorhttp.config.parsers import Automatic
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError
from poorhttp.plugins.autoscaling.worker_hooks import HOOKS
from tests.support.binary_upgrade import end, upgrade
from tests.support.status_reader import Admin
from tests.testkit.server import Server

AUTO = ("--threads", "auto", "--min-threads", "2", "--max-threads", "5")


@pytest.fixture
def admin(folder: Path) -> Admin:
    return Admin(folder)


def hold(server: Server, gate: Path, stack: ExitStack, requests: int) -> None:
    """Send requests that wait for a file, in turn; at most as many run as there may be threads."""
    connections = [stack.enter_context(server.connect()) for _ in range(requests)]
    for connection in connections:
        connection.send_request("GET", f"/hold?{gate}")
    stack.callback(lambda: [connection.response() for connection in connections])


def test_threads_come_stay_over_a_reload_and_an_upgrade_and_go(
    admin: Admin, tmp_path: Path
) -> None:
    gate, pidfile = tmp_path / "gate", tmp_path / "pid"
    options = (*AUTO, *admin.options, "--pidfile", str(pidfile))
    with Server("tests/apps/busy.py", "threading", *options) as server:
        assert admin.figures()["threads"] == 2
        with ExitStack() as stack:
            hold(server, gate, stack, 7)
            stack.callback(gate.touch)
            server.wait_log(f"holds {gate}\n", 5)
            found = admin.wait(lambda service: service["figures"]["threads"] == 5, "five threads")
            assert found["threads_follow_load"]
            assert found["capacity"] == 5
            changes = found["figures"]["thread_changes"]
            assert changes["added"] - changes["ended"] == 3
            assert found["figures"]["thread_waits"]
        os.kill(server.process.pid, signal.SIGHUP)
        server.wait_log("reloaded: the new version serves")

        def is_new(service: object) -> bool:
            return admin.figures()["threads"] == 5 and len(admin.service()["workers"]) == 1

        admin.wait(is_new, "five threads of the new version")
        pid = upgrade(server, pidfile)
        admin.wait(is_new, "five threads of the new main process")
        admin.wait(lambda service: service["figures"]["threads"] == 2, "two threads")
        with server.connect() as connection:
            assert connection.request("GET", "/late").body == b"/late 0\n"
        end(server, pid)


def test_no_thread_comes_while_others_compute(admin: Admin) -> None:
    with Server("tests/apps/computing.py", "threading", *AUTO, *admin.options) as server:
        with ExitStack() as stack:
            connections = [stack.enter_context(server.connect()) for _ in range(6)]
            for _ in range(5):
                for connection in connections:
                    connection.send_request("GET", "/compute")
                for connection in connections:
                    assert connection.response().status == 200
        figures = admin.figures()
        looks = figures["interpreter_looks"]
        assert looks["held"] > looks["free"], looks
        assert figures["threads"] < 5, figures


@pytest.mark.parametrize("mode", ["single", "forking", "gevent", "asyncio"])
def test_modes_without_threads_refuse(mode: str) -> None:
    with pytest.raises(
        ConfigError, match=f"threads = auto is for mode threading; mode {mode} runs"
    ):
        HOOKS.check(Settings(threads="auto", mode=mode))


def test_bounds() -> None:
    settings = Settings(threads="auto", min_threads=3, max_threads=9)
    HOOKS.check(settings)
    assert isinstance(settings.threads, Automatic)
    assert settings.threads + 0 == 3
    assert HOOKS.reactor_arguments(settings) == {"auto_threads": (3, 9)}
    with pytest.raises(ConfigError, match="min_threads = 10 is more than max_threads = 9"):
        HOOKS.check(Settings(threads="auto", min_threads=10, max_threads=9))
