"""Servers whose main process was killed (`kill -9`): nothing outlives `graceful_timeout`."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.supervisor.reloads import reload
from tests.support.each_value import DIFFERENT, each_value
from tests.testkit.client import HANG
from tests.testkit.process import children, lives
from tests.testkit.server import READY, Program, Server, command, mode_options, wait_for

pytestmark = pytest.mark.each_mode

#: In C code, where no handler of Python comes to run, and in Python.
APPLICATION = """
import ctypes, hashlib, signal, sys, time

def hang(how):
    if how == "/deaf":
        for each in signal.valid_signals() - {9, 19}:
            ctypes.CDLL(None).signal(each, 1)
    if how == "/blocked":
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    print("hangs", file=sys.stderr, flush=True)
    if how != "/native":
        time.sleep(100_000)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)

def application(environ, start_response):
    hang(environ["PATH_INFO"])
"""

LIMIT = ("--graceful-timeout", "0.5")


def kill_main(server: Program) -> list[int]:
    pids = children(server.process.pid)
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait(HANG)
    return pids


def wait_for_end(pids: list[int]) -> None:
    wait_for(lambda: not any(map(lives, pids)), "the end of all processes")


def log_of_hung(folder: Path, mode: str, how: str, *options: str, before: str = "") -> str:
    """Kill the main process while a request hangs, and wait until nothing is left; the log."""
    (folder / "hung.py").write_text(before + APPLICATION)
    with Server("hung:application", mode, *LIMIT, *options, cwd=folder) as server:
        server.connect().send_request("GET", how)
        server.wait_log("hangs")
        wait_for_end(kill_main(server))
        log = server.log()
        server.kill()
    return log


@pytest.mark.parametrize(
    ("mode", "how"),
    [
        *each_value(DIFFERENT, ["/python", "/native"]),
        # It ignores or blocks all signals: in some modes no other thread is there that finds the
        # end of the control channel.
        *[("forking", "/deaf"), ("threading", "/blocked")],
    ],
    indirect=["mode"],
)
def test_a_request_that_hangs(how: str, mode: str, tmp_path: Path) -> None:
    log = log_of_hung(tmp_path, mode, how)
    if how == "/python":
        assert "the main process has ended: requests in flight may take 0.5 s" in log
        assert "stopped with requests still in flight: request 1 GET /python" in log


def test_a_request_that_ends(mode: str, tmp_path: Path) -> None:
    """It is answered first. A service manager may send TERM to all that is left meanwhile."""
    gate = tmp_path / "gate"
    with Server("tests/apps/gate.py", mode) as server:
        waiting = server.enter(gate)
        pids = kill_main(server)
        server.wait_log("the main process has ended")
        for pid in pids:
            with suppress(ProcessLookupError):  # A worker without requests may have ended.
                os.kill(pid, signal.SIGTERM)
        gate.touch()
        assert waiting.response().status == 200
        waiting.close()
        wait_for_end(pids)
        # Each has said so once, and its time did not begin again.
        assert server.log().count("the main process has ended") <= len(pids)
        server.kill()


def test_a_worker_that_a_reload_has_retired(tmp_path: Path) -> None:
    options = ("--graceful-timeout", "2")
    with Server("tests/apps/gate.py", "threading", *options) as server:
        server.enter(tmp_path / "never")
        before = children(server.process.pid)
        reload(server)
        wait_for_end([*before, *kill_main(server)])
        server.kill()


@pytest.mark.parametrize("options", [(), ("--preload",)])
def test_an_application_that_is_being_loaded(options: tuple[str, ...], tmp_path: Path) -> None:
    """By a worker, or by the preloader."""
    (tmp_path / "hung.py").write_text(f"{APPLICATION}\nhang('/native')\n")
    bind = ("--bind", "127.0.0.1:0")
    words = command("serve", "hung:application", *bind, *mode_options("forking"), *LIMIT, *options)
    with Program(*words, cwd=tmp_path) as server:
        server.wait_log("hangs")
        assert READY.search(server.log()) is None
        wait_for_end(kill_main(server))


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ((), "signal.pthread_sigmask(0, [each])"),
        (("--preload",), "signal.signal(each, lambda *_: None)"),
    ],
)
def test_an_application_that_handles_or_blocks_all_signals(
    options: tuple[str, ...], change: str, tmp_path: Path
) -> None:
    before = f"import signal\nfor each in signal.valid_signals() - {{9, 19}}:\n    {change}\n"
    log_of_hung(tmp_path, "threading", "/python", *options, before=before)
