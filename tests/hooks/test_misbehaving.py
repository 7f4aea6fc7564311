"""Functions of hooks that fail, exit, are killed or hang: all others are called nonetheless."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.hooks.events import Hooked, hooked
from tests.testkit.process import children

HOOK = "tests.apps.hooked:"


def exits(*functions: str) -> tuple[str, ...]:
    """The options that name functions of `worker_exit`."""
    return tuple(word for name in functions for word in ("--hook-worker-exit", HOOK + name))


def test_the_next_functions_are_called(tmp_path: Path) -> None:
    options = (
        *("--workers", "2", "--drain-timeout", "0.1"),
        *("--hook-worker-start", f"{HOOK}worker_start"),
        *exits("fail", "leave", "end", "be_killed", "fork", "worker_exit"),
        *("--hook-worker-exit", "sys:version"),
    )
    with Hooked(tmp_path, "threading", *options, tracebacks=True) as server:
        server.wait_log("a hook cannot be called: --hook-worker-exit: sys:version has failed: Typ")
        first = server.pids()
        for pid in first:
            os.kill(pid, signal.SIGKILL)
        server.wait_ends(*first)
        server.wait_log("sys:version has failed: TypeError", 3)
        log = server.log()
        last = server.wait_workers()
    for text in (
        f"a hook failed: --hook-worker-exit: {HOOK}fail has failed: RuntimeError: not this time",
        f"a hook failed: --hook-worker-exit: {HOOK}leave has failed: SystemExit: sys.exit('gone')",
    ):
        assert log.count(text) == 2, log
    for name, how in (("end", "ended with 3"), ("be_killed", "was killed by SIGKILL")):
        for pid in first:
            about = f"the hook --hook-worker-exit: {HOOK}{name} (number "
            lines = [each for each in log.splitlines() if about in each]
            (line,) = [each for each in lines if f", pid {pid}," in each]
            assert "reason killed, signal 9) has not finished: its process " in line
            assert line.endswith(how)
    ended = server.values("worker_exit", "pid")
    assert (sorted(ended[:2]), sorted(ended[2:])) == (sorted(first), sorted(last))


def test_a_function_that_hangs(tmp_path: Path) -> None:
    """It is killed after `graceful_timeout`, and nothing else waits longer for it."""
    options = (*exits("hang_for_two", "worker_exit"), "--graceful-timeout", "2")
    with hooked(tmp_path, "threading", *options) as server:
        second = server.kill_worker(2)
        server.wait_events("hang")
        first = server.kill_worker(1)
        # Requests are answered, and a reload succeeds.
        assert server.get("/").status == 200
        server.reload()
        server.wait_log(
            f"pid {second}, reason killed, signal 9) takes longer than 2 s, and is kill"
        )
        server.wait_ends(first, second)


def test_the_process_of_hooks_is_killed(tmp_path: Path) -> None:
    """While it waits: the next event gets another one."""
    with hooked(tmp_path, "threading") as server:
        (ready,) = server.events("server_ready")
        os.kill(ready["in"], signal.SIGKILL)
        # The function has perhaps "not finished": that it is done was not said yet.
        server.wait_log(f" {ready['in']} was killed by SIGKILL")
        server.kill_worker()
        (ended,) = server.wait_events("worker_exit")
        assert ended["in"] != ready["in"]
        # It is stopped, and an event waits.
        os.kill(ended["in"], signal.SIGSTOP)
        server.kill_worker()
        server.wait_workers()
        os.kill(ended["in"], signal.SIGKILL)
        server.wait_events("worker_exit", 2)
        assert len(children(server.process.pid)) == 3
