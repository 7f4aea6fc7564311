"""`threads = auto` and `workers = auto`: both come with requests that wait, and go when idle."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import poorhttp
from poorhttp.config.parsers import Automatic
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError
from poorhttp.plugins.autoscaling import worker_hooks
from poorhttp.plugins.autoscaling.worker_hooks import HOOKS, worker_bounds
from tests.support.binary_upgrade import end, upgrade, wait_for_end
from tests.support.forked_command import run_command
from tests.support.status_reader import Admin
from tests.testkit.server import Server, patched

if TYPE_CHECKING:
    from poorhttp.plugins.monitor.admin.model import Service

AUTO = ("--threads", "auto", "--min-threads", "2", "--max-threads", "5")


@pytest.fixture
def admin(folder: Path) -> Admin:
    return Admin(folder)


def test_threads_come_stay_over_a_reload_and_an_upgrade_and_go(
    admin: Admin, tmp_path: Path
) -> None:
    gate, pidfile = tmp_path / "gate", tmp_path / "pid"
    options = (*AUTO, *admin.options, "--pidfile", str(pidfile))
    with Server("tests/apps/busy.py", "threading", *options) as server:
        assert admin.figures()["threads"] == 2
        with ExitStack() as stack:
            # At most as many run as there may be threads.
            for _ in range(7):
                connection = stack.enter_context(server.connect())
                connection.send_request("GET", f"/hold?{gate}")
                stack.callback(connection.response)
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


def hold_interpreter(admin: Admin, folder: Path) -> tuple[int, int]:
    """Have requests wait while the interpreter is held: looks that have seen it, threads added."""
    names = [folder / "ready", folder / "gate"]
    for name in names:
        os.mkfifo(name)
    ready, gate = (os.open(name, os.O_RDWR) for name in names)
    with Server("tests/apps/computing.py", "threading", *AUTO, *admin.options) as server:
        with ExitStack() as stack:

            def send(*paths: str) -> None:
                for path in paths:
                    connection = stack.enter_context(server.connect())
                    connection.send_request("GET", f"/{path}?{names[0]}&{names[1]}")
                    stack.callback(connection.response)

            def waits(service: Service) -> bool:
                # A thread that has not begun to wait for requests cannot accept them.
                queues = sum(queue["waiting"] for queue in service["accept_queues"])
                # With more threads, these requests need not wait.
                added = service["figures"]["thread_changes"]["added"]
                return service["figures"]["queued"] + queues + added > 0

            send("hold")
            # One that waits for the interpreter holds it when the one before has ended; by then the
            # other thread may have answered all others.
            for paths in (*[["hold", "", ""]] * 8, ["", ""]):
                os.read(ready, 1)
                send(*paths)
                admin.wait(waits, "requests that wait")
                os.write(gate, b"+")
        figures = admin.figures()
    os.close(ready)
    os.close(gate)
    return figures["interpreter_looks"]["held"], figures["thread_changes"]["added"]


def test_no_thread_comes_while_the_interpreter_is_held(admin: Admin, tmp_path: Path) -> None:
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        held, added = hold_interpreter(admin, folder)
        # On a busy machine nobody may have looked meanwhile, or requests have waited afterwards.
        if held >= 2 and not added:
            return
    pytest.fail(f"the interpreter was found held {held} times, and {added} threads were added")


#: Launcher of a server that takes a processor for idle, and looks back for a moment only.
SOON = patched(
    "poorhttp.plugins.autoscaling.worker_count", IDLE=-1.0, HALF=0.5, REGRET=0.0, STANDING=1
)


def test_workers_come_stay_over_a_reload_and_an_upgrade_and_go(
    admin: Admin, tmp_path: Path
) -> None:
    pidfile = tmp_path / "pid"
    bounds = ("--workers", "auto", "--min-workers", "1", "--max-workers", "3")
    options = (*bounds, *admin.options, "--pidfile", str(pidfile))

    def is_back(service: Service) -> bool:
        # It had begun with three.
        return service["alive"] == 1 and service["scaling"].get("ended") == 2

    with Server("tests/apps/busy.py", "forking", *options, launcher=SOON) as server:
        assert admin.service()["wanted"] == 1
        for times, number in enumerate((signal.SIGHUP, signal.SIGUSR2), 1):
            gate = tmp_path / f"gate{number}"
            with ExitStack() as stack:
                for held in range(1, 4):
                    # A worker that has nothing to do would accept several at once.
                    connection = stack.enter_context(server.connect())
                    stack.callback(connection.response)
                    stack.callback(gate.touch)
                    connection.send_request("GET", f"/hold?{gate}")
                    server.wait_log(f"holds {gate}\n", held)
                found = admin.wait(lambda service: service["alive"] == 3, "three workers")
                assert found["workers_follow_load"]
                assert found["scaling"]["room"] > 0
                server.wait_log("3 workers from now on (workers = auto): ", times)
                main = int(pidfile.read_text())
                os.kill(main, number)
                server.wait_log("reloaded: the" if times == 1 else "has taken over")
                admin.wait(is_back, "one worker of the new version")
        wait_for_end(main, server)
        with server.connect() as connection:
            assert connection.request("GET", "/late").body == b"/late 0\n"
        end(server, int(pidfile.read_text()))


def test_what_a_person_sets_holds_until_the_next_reload(admin: Admin) -> None:
    bounds = ("--workers", "auto", "--min-workers", "1", "--max-workers", "3")
    options = (*bounds, *AUTO, *admin.options)
    with Server("tests/apps/busy.py", "threading", *options, launcher=SOON) as server:

        def ctl(*words: str) -> str:
            done = run_command("ctl", "--admin", f"unix:{admin.path}", *words)
            return done.stdout + done.stderr

        os.kill(server.process.pid, signal.SIGTTIN)
        server.wait_log("workers = auto leaves this number until the next reload")
        assert "1 workers" in ctl("remove")
        assert "2 workers" in ctl("add")
        found = admin.wait(lambda service: service["scaling"].get("workers_by_hand"), "a number")
        assert found["wanted"] == 2
        assert "threads have to be from 2 to 5" in ctl("threads", "6")
        assert "4 threads in each worker until the next reload" in ctl("threads", "4")
        admin.wait(lambda service: service["figures"]["threads"] == 8, "four threads each")
        assert "a person has set the number" in ctl("status")
        # The one that was removed may still be ending.
        found = admin.wait(lambda service: len(service["workers"]) == 2, "two workers")
        first = found["workers"][0]
        os.kill(first["pid"], signal.SIGKILL)

        def is_replaced(service: Service) -> bool:
            found = {each["pid"]: each["figures"]["threads"] for each in service["workers"]}
            return {*found.values()} == {4} and first["pid"] not in found

        admin.wait(is_replaced, "four threads of the next worker")
        assert "3 threads" in ctl("threads", "3")
        admin.wait(lambda service: service["figures"]["threads"] == 6, "three threads each")
        os.kill(server.process.pid, signal.SIGHUP)
        server.wait_log("reloaded: the new version serves")
        admin.wait(lambda service: service["wanted"] == 1, "the number by the load")
        assert "threads_by_hand" not in admin.service()["scaling"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": "auto", "mode": "single"}, "workers = auto is not for mode single"),
        ({"workers": "auto", "supervisor": False}, "needs a main process"),
        ({"workers": "auto", "reuse_port": True}, "cannot be used with reuse_port"),
        (
            {"workers": "auto", "min_workers": 3, "max_workers": 2},
            "min_workers = 3 is more than max_workers = 2",
        ),
        (
            {"threads": "auto", "min_threads": 10, "max_threads": 9},
            "min_threads = 10 is more than max_threads = 9",
        ),
        *(
            (
                {"threads": "auto", "mode": mode},
                f"threads = auto is for mode threading; mode {mode} runs",
            )
            for mode in ("single", "forking", "gevent", "asyncio")
        ),
    ],
)
def test_what_cannot_follow_the_load(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        HOOKS.check(Settings(**options))


def test_bounds_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    def begins(**options: Any) -> int:
        settings = Settings(workers="auto", **options)
        HOOKS.check(settings)
        return settings.worker_count

    for cpus, threading, forking in ((1, 1, 2), (4, 4, 4)):
        monkeypatch.setattr(worker_hooks, "usable_cpus", lambda cpus=cpus: cpus)
        assert (begins(), begins(mode="forking")) == (threading, forking)
        assert worker_bounds(Settings(workers="auto"))[1] == 8 * cpus
    assert begins(min_workers=6) == 6
    # The memory is not enough for four.
    monkeypatch.setattr(worker_hooks, "memory_limit", lambda: 5 << 30)
    assert begins(max_rss="2G") == 2
    assert begins(max_rss="9G") == 1


@pytest.mark.parametrize("name", ["threads", "workers"])
def test_a_server_in_threads_of_a_program_refuses(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}=auto: not available in a Server"):
        poorhttp.Server("tests/apps/busy.py", **{name: "auto"})


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(threads="auto", min_threads=3, max_threads=9)
    HOOKS.check(settings)
    assert isinstance(settings.threads, Automatic)
    assert settings.threads + 0 == 3
    monkeypatch.setattr(worker_hooks, "usable_cpus", lambda: 8)
    monkeypatch.setattr(worker_hooks, "memory_limits", lambda: [("/group", 5)])
    assert HOOKS.reactor_arguments(settings) == {"auto_threads": (3, 9, 8, [("/group", 5)])}
    settings.workers = 3
    assert HOOKS.reactor_arguments(settings) == {"auto_threads": (3, 9, 2, [("/group", 5)])}
