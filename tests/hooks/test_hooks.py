"""Which hook is called when, in which process, in which order, and what it gets."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.hooks.events import ALL, Hooked, hooked
from tests.support.binary_upgrade import end, upgrade
from tests.support.nobody import IS_ROOT, Nobody
from tests.testkit.process import children, lives, opened
from tests.testkit.server import ROOT, Server, wait_for


@pytest.mark.each_mode
def test_the_life_of_workers(mode: str, tmp_path: Path) -> None:
    """Recycled, killed, reloaded, stopped: each end is told, in its order."""
    with hooked(tmp_path, mode, "--max-requests", "6") as server:
        main = server.process.pid
        first = server.wait_events("worker_start", 2)
        assert [(each["number"], each["in"]) for each in first] == [
            (number, pid) for number, pid in enumerate(server.pids(), 1)
        ]
        assert all(each["pid"] == each["in"] and each["parent"] == main for each in first)
        (ready,) = server.events("server_ready")
        assert (ready["pid"], ready["workers"], ready["parent"]) == (main, 2, main)
        assert ready["urls"] == [f"http://127.0.0.1:{server.port}"]
        assert ready["in"] not in server.pids()
        assert not ready["gevent"]

        answered: Counter[int] = Counter()
        while not answered or max(answered.values()) < 6:
            answered[server.get("/").json()["pid"]] += 1
        recycled = server.wait_events("worker_exit")
        server.wait_workers()
        server.wait_events("worker_start", 3)
        killed = server.kill_worker(2)
        server.wait_ends(killed)
        before = server.wait_workers()
        server.reload()
        server.wait_ends(*before)
        last = server.pids()
    ends = server.events("worker_exit")
    assert {each["in"] for each in recycled} == {ready["in"]}
    by_reason = {each["reason"]: each for each in ends}
    assert set(by_reason) == {"recycled", "killed", "reloaded", "stopped"}
    assert by_reason["killed"]["pid"] == killed
    assert (by_reason["killed"]["exit_code"], by_reason["killed"]["signal"]) == (None, 9)
    others = [each for each in ends if each["reason"] != "killed"]
    assert {(each["exit_code"], each["signal"]) for each in others} == {(0, None)}
    assert {each["pid"] for each in ends if each["reason"] == "reloaded"} == set(before)
    assert {each["pid"] for each in ends if each["reason"] == "stopped"} == set(last)
    # Each worker that has begun has ended once, and those of a number one after the other.
    assert sorted(server.values("worker_start", "pid")) == sorted(each["pid"] for each in ends)
    (reload,) = server.events("reload")
    assert reload["succeeded"]
    assert (reload["pid"], reload["message"]) == (main, "reloaded: the new version serves")
    order = [(each["hook"], each.get("reason")) for each in server.events()]
    assert order.index(("reload", None)) < order.index(("worker_exit", "reloaded"))
    assert order.index(("worker_exit", "reloaded")) < order.index(("worker_exit", "stopped"))


VERSIONED = """
import json, os
from tests.apps.hooked import application
def hook(name):
    def note(argument):
        with open(os.environ["HOOKS_LOG"], "a") as file:
            file.write(json.dumps({"hook": name, "version": VERSION, **vars(argument)}) + "\\n")
    return note
worker_exit, server_ready, reload = map(hook, ("worker_exit", "server_ready", "reload"))
"""


def test_versions(tmp_path: Path) -> None:
    """Each version has its own functions, which its workers' ends are told to."""
    module = tmp_path / "hooked_versions.py"

    def write(version: int, text: str = VERSIONED) -> None:
        module.write_text(text.replace("VERSION", str(version)))
        os.utime(module, (version, version))

    write(1)
    options = (
        *("--hook-worker-exit", "hooked_versions:worker_exit"),
        *("--hook-server-ready", "hooked_versions:server_ready"),
        *("--hook-reload", "hooked_versions:reload", "--drain-timeout", "0.1"),
    )
    with Hooked(tmp_path, "threading", *options, app="hooked_versions", cwd=tmp_path) as server:
        server.wait_events("server_ready")
        write(2)
        server.reload()
        server.wait_events("worker_exit")
        write(3, "import none_of_this")
        server.process.send_signal(signal.SIGHUP)
        server.wait_events("reload", 2)
        wait_for(lambda: len(children(server.process.pid)) == 2, "one process for hooks")
    ends = [(each["version"], each["reason"]) for each in server.events("worker_exit")]
    assert ends == [(1, "reloaded"), (2, "stopped")]
    reloads = [(each["version"], each["succeeded"]) for each in server.events("reload")]
    assert reloads == [(2, True), (2, False)]


def test_a_worker_that_is_given_up(mode: str, tmp_path: Path) -> None:
    """A request cannot be interrupted: `worker_timeout`, and its end as `timeout`."""
    options = ("--request-timeout", "0.2", "--graceful-timeout", "2")
    with hooked(tmp_path, mode, *options, tracebacks=True) as server:
        connection = server.connect()
        connection.send_request("GET", "/stay")
        (given_up,) = server.wait_events("worker_timeout")
        assert given_up["reason"] == "a request in it cannot be interrupted"
        assert given_up["pid"] in server.values("worker_start", "pid")
        assert "GET /stay" in given_up["in_flight"]
        (ended,) = server.wait_events("worker_exit")
    assert (ended["pid"], ended["reason"]) == (given_up["pid"], "timeout")
    assert len(server.events("worker_timeout")) == 1


def test_all_processes_get_the_signal(tmp_path: Path) -> None:
    """A terminal and systemd send it to each process: the last ends are told nonetheless."""
    gate = tmp_path / "gate"
    options = ("--hook-worker-exit", "tests.apps.hooked:wait")
    with hooked(tmp_path, "threading", *options, env={"HOOKS_GATE": str(gate)}) as server:
        killed = server.kill_worker()
        server.wait_events("wait")
        last = server.wait_workers()
        os.killpg(server.process.pid, signal.SIGTERM)
        wait_for(lambda: not any(map(lives, last)), "the end of the workers")
        assert lives(server.process.pid)
        assert len(server.events("worker_exit")) == 1
        gate.touch()
        assert server.wait() == 0
        for hook in ("wait", "worker_exit"):
            first, *others = server.events(hook)
            assert (first["pid"], first["reason"]) == (killed, "killed")
            assert sorted(each["pid"] for each in others) == sorted(last)
            assert {each["reason"] for each in others} == {"stopped"}
        server.ended()


def test_upgrade(tmp_path: Path) -> None:
    """The old main process tells the end of its workers, the new one that it is ready."""
    pidfile = tmp_path / "pid"
    with hooked(tmp_path, "threading", "--pidfile", str(pidfile)) as server:
        before = server.pids()
        new = upgrade(server, pidfile)
        server.wait_events("server_ready", 2)
        assert server.values("server_ready", "pid") == [server.process.pid, new]
        ends = server.events("worker_exit")
        assert {(each["pid"], each["reason"]) for each in ends} == {
            (pid, "upgraded") for pid in before
        }
        end(server, new)
    ends = server.events("worker_exit")[2:]
    assert [each["reason"] for each in ends] == ["stopped"] * 2
    assert {each["parent"] for each in ends} == {new}


def test_preload(mode: str, tmp_path: Path) -> None:
    """With a preloader, the functions of `worker_start` run in each worker."""
    with hooked(tmp_path, mode, "--preload", "--max-lifetime", "86400") as server:
        starts = server.wait_events("worker_start", 2)
        assert {each["in"] for each in starts} == {each["pid"] for each in starts}
        assert {server.get("/").json()["pid"] for _ in range(9)} <= {each["pid"] for each in starts}
        killed = server.kill_worker()
        (ended,) = server.wait_events("worker_exit")
        assert (ended["pid"], ended["signal"]) == (killed, 9)


def test_refork(tmp_path: Path) -> None:
    """A worker that becomes the preloader is no worker any more; its forks begin as workers."""
    with hooked(tmp_path, "threading", "--preload", "--refork-after", "10") as server:
        for _ in range(25):
            server.get("/")
        server.wait_log("reforked 2 workers")
        starts = server.wait_events("worker_start", 4)
        assert len({each["in"] for each in starts}) == 4
        ends = server.wait_events("worker_exit", 3)
        (preloader,) = [each for each in ends if each["number"] == 0]
        assert (preloader["reason"], preloader["exit_code"]) == ("stopped", 0)
        ends.remove(preloader)
        promoted, recycled = sorted(ends, key=lambda each: str(each["reason"]))
        assert promoted["reason"] == "promoted"
        assert (promoted["exit_code"], promoted["signal"]) == (None, None)
        assert lives(promoted["pid"])
        assert (recycled["reason"], recycled["exit_code"]) == ("recycled", 0)


def test_standalone(mode: str, tmp_path: Path) -> None:
    """Without a main process all runs in the one that serves."""
    options = [*ALL[:6], "--supervisor=off", "--workers", "1"]
    with Hooked(tmp_path, mode, *options) as server:
        server.get("/")
    pid = server.process.pid
    assert [(each["hook"], each["in"], each["pid"]) for each in server.events()] == [
        (hook, pid, pid) for hook in ("worker_start", "server_ready", "worker_exit")
    ]
    ended = server.events()[-1]
    assert (ended["reason"], ended["exit_code"]) == ("stopped", 0)


def test_user_folder_and_path(folder: Path, nobody: Nobody) -> None:
    """They are those of the workers."""
    folder.chmod(0o777)
    (folder / "lib").mkdir()
    shutil.copy(ROOT / "tests/apps/hooked.py", folder / "lib/hooked_by_others.py")
    user = ("--user", "nobody") if IS_ROOT else ()
    hooks = ("--hook-worker-start", "hooked_by_others:worker_start", "--hook-worker-exit")
    place = ("--chdir", str(folder), "--env", "SHOP_KEY=secret")
    options = (*hooks, "hooked_by_others:worker_exit", *place)
    with Hooked(
        *(folder, "threading", *options, "--pythonpath", "lib", *user),
        app="hooked_by_others",
        cwd=Path("/"),
        env=nobody.env,
    ) as server:
        server.kill_worker()
        server.wait_events("worker_exit")
    (first, *_), (ended, *_) = server.events("worker_start"), server.events("worker_exit")
    assert first["uid"] == ended["uid"]
    assert bool(ended["uid"]) or not IS_ROOT
    assert first["key"] == ended["key"] == "secret"
    assert first["folder"] == ended["folder"] == str(folder)
    assert first["first"] == ended["first"] == str(folder)


def test_log_rotation(tmp_path: Path) -> None:
    """The process of the hooks writes to the new file."""
    log = tmp_path / "error.log"
    fails = ("--hook-worker-exit", "tests.apps.hooked:fail")
    with hooked(tmp_path, "threading", *fails, "--error-log", str(log)) as server:
        log.rename(tmp_path / "error.log.1")
        server.process.send_signal(signal.SIGUSR1)
        wait_for(log.exists, "the new file")
        (ready,) = server.events("server_ready")
        wait_for(lambda: str(log) in opened(ready["in"]), "the new file in the hooks' process")
        server.kill_worker()
        wait_for(lambda: "RuntimeError: not this time" in log.read_text(), "the failure")


def test_none(tmp_path: Path) -> None:
    """Without hooks there is no process for them, and no worker has imported them."""
    with Server("tests.apps.hooked:application", env={"HOOKS_LOG": "/dev/null"}) as server:
        answer = server.get("/").json()
        assert children(server.process.pid) == [answer["pid"]]
        assert not answer["hooks"]
