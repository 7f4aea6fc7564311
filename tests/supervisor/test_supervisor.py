"""The main process: numbers of workers, their starts and their failures."""

from __future__ import annotations

import os
import re
import resource
import signal
import time
from pathlib import Path

import pytest

from poorhttp.supervisor.backoff import LOGGED, LONGEST_PAUSE, Backoff
from tests.supervisor.reloads import refused_reload
from tests.support.forked_command import run_command
from tests.support.load import Load
from tests.testkit.process import children
from tests.testkit.server import Server, patched, wait_for
from tests.testkit.versions import Versions, told

# How many


def wait_workers(server: Server, count: int) -> None:
    wait_for(lambda: len(children(server.process.pid)) == count, f"{count} workers")


def test_one_more_and_one_fewer(mode: str, versions: Versions) -> None:
    with versions.serve(mode, "--workers", "1") as server:
        with Load(server.port) as load:
            for number, count in [(signal.SIGTTIN, 2), (signal.SIGTTIN, 3), (signal.SIGTTOU, 2)]:
                server.process.send_signal(number)
                wait_workers(server, count)
                load.wait_pids(children(server.process.pid))
        load.check()
        for _ in range(3):
            server.process.send_signal(signal.SIGTTOU)
        # There is no less.
        wait_workers(server, 1)
        assert told(server)["version"] == "1"


# How they begin


def test_equal_pages_are_merged(versions: Versions) -> None:
    state = Path("/proc/self/ksm_stat")
    if not state.exists() or "ksm_merge_any" not in state.read_text():
        pytest.skip("this kernel does not say which processes are merged")
    with versions.serve("forking", "--workers", "2", "--merge-memory") as server:
        pids = [server.process.pid, *children(server.process.pid)]
        states = [Path(f"/proc/{pid}/ksm_stat").read_text() for pid in pids]
        assert [re.findall(r"ksm_merge_any: (\w+)", state) for state in states] == [["yes"]] * 3
        runs = Path("/sys/kernel/mm/ksm/run").read_text() == "1\n"
        text = "merge_memory has no effect until 1 is written to"
        if runs:
            assert text not in server.log()
        else:
            server.wait_log(text)


def test_preload_shares_the_application(versions: Versions) -> None:
    options = ("--preload", "--workers", "2", "--after-fork", "tests.apps.versioned:forked")
    with versions.serve("forking", *options) as server:
        answers = [told(server)]

        def have_both_answered() -> bool:
            answers.append(told(server))
            return len({answer["pid"] for answer in answers}) == 2

        wait_for(have_both_answered, "an answer of each worker")
        for answer in answers:
            assert answer["parent"] == server.process.pid
            assert answer["forked"] == [answer["pid"]]
        # The template goes when nobody needs it, and comes again when somebody does.
        wait_workers(server, 2)
        server.process.send_signal(signal.SIGTTIN)
        wait_workers(server, 4)
        wait_workers(server, 3)


def test_after_fork(mode: str, versions: Versions) -> None:
    hook = "tests.apps.versioned:forked"
    with versions.serve(mode, "--workers", "2", "--after-fork", hook) as server:
        for _ in range(10):
            answer = told(server)
            assert answer["forked"] == [answer["pid"]]


# How they fail


#: One every half minute.
WEEK = 7 * 24 * 3600 // 30


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_the_pause_of_5000_failures(clock: list[float]) -> None:
    pauses = []
    early = Backoff()
    for _ in range(5000):
        early.fail()
        pauses.append(early.pause)
    assert pauses == [1, 2, 4, 8, 16, *[LONGEST_PAUSE] * 4995]
    early.succeed()
    early.fail()
    assert early.pause == 1


def test_a_week_is_not_a_flood(clock: list[float]) -> None:
    early = Backoff()
    logged = 0
    for _ in range(WEEK):
        logged += early.fail()
        clock[0] = early.until
    assert early.count == WEEK
    # One in an hour.
    assert LOGGED + 160 < logged <= LOGGED + 168


def test_what_is_said() -> None:
    early = Backoff()
    assert early.fail()
    assert early.text() == ""
    assert early.fail()
    assert early.text().endswith("(2 in a row have died early)")
    for _ in range(LOGGED - 2):
        assert early.fail()
    assert "; from now on this is said every 60 minutes)" in early.text()
    assert not early.fail()


@pytest.mark.parametrize(
    ("options", "version", "why"),
    [((), "mortal", "was killed by SIGKILL"), (("--preload",), "broken", "this version is broken")],
)
def test_a_worker_that_cannot_begin_for_some_time(
    options: tuple[str, ...], version: str, why: str, versions: Versions
) -> None:
    """The others are left alone. It is tried again, and that all serve again is said."""
    launcher = patched("poorhttp.supervisor.backoff", LONGEST_PAUSE=0.1)
    with versions.serve("forking", "--workers", "2", *options, launcher=launcher) as server:
        # And no preloader any more.
        wait_workers(server, 2)
        survivor, victim = children(server.process.pid)
        versions.set(version)
        os.kill(victim, signal.SIGKILL)
        server.wait_log("(3 in a row have died early)")
        server.wait_log(why)
        assert {told(server)["pid"] for _ in range(20)} == {survivor}
        versions.set("2")
        wait_for(lambda: told(server)["version"] == "2", "the worker that is mended")
        server.wait_log("all workers serve again; ")


@pytest.mark.parametrize("supervisor", ["on", "off"])
def test_an_interrupt_that_is_the_applications(supervisor: str, tmp_path: Path) -> None:
    """Ctrl-C would have stopped the server; so this is a fault like any other."""
    app = tmp_path / "app.py"
    app.write_text("raise KeyboardInterrupt\n")
    done = run_command("serve", f"{app}:app", "--bind", "127.0.0.1:0", "--supervisor", supervisor)
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1
    assert "KeyboardInterrupt" in done.stderr


def test_without_descriptors_it_goes_on(versions: Versions) -> None:
    """What cannot be done now is tried again, and those that live are left alone."""
    with versions.serve("forking", "--workers", "2") as server:
        main = server.process.pid
        survivor, victim = children(server.process.pid)
        _, most = resource.prlimit(main, resource.RLIMIT_NOFILE)
        # One will be free when the victim is buried; a line to another needs two.
        used = max(int(fd.name) for fd in Path(f"/proc/{main}/fd").iterdir()) + 1
        resource.prlimit(main, resource.RLIMIT_NOFILE, (used, most))
        os.kill(victim, signal.SIGKILL)
        server.wait_log("no worker can be forked: Too many open files; the next attempt is made in")
        refused_reload(server)
        server.process.send_signal(signal.SIGUSR2)
        server.wait_log("a new main process cannot be started: ")
        assert {told(server)["pid"] for _ in range(20)} == {survivor}
        resource.prlimit(main, resource.RLIMIT_NOFILE, (most, most))
        wait_for(lambda: told(server)["pid"] != survivor, "the worker that was missing")


# How they are stopped (SIGSTOP)


def waiting(seconds: float) -> tuple[str, ...]:
    """Start the server as it would be if a process might be stopped for so long."""
    return patched("poorhttp.supervisor.worker_handle", STOPPED=seconds)


def test_a_worker_that_is_stopped_is_replaced(mode: str, versions: Versions) -> None:
    with versions.serve(mode, "--workers", "1", launcher=waiting(0.2)) as server:
        pid = told(server)["pid"]
        os.kill(pid, signal.SIGSTOP)
        server.wait_log(f"worker {pid} was stopped by SIGSTOP: it serves no requests")
        server.wait_log(f"worker {pid} is still stopped (SIGSTOP), and is killed")
        server.wait_log(f"worker {pid} was killed by SIGKILL and is replaced")
        assert told(server)["pid"] != pid


@pytest.mark.parametrize("verb", ["serve", "dev"])
def test_a_worker_that_goes_on_is_left_alone(verb: str, versions: Versions) -> None:
    seconds = 3600 if verb == "serve" else 0
    with versions.serve("threading", verb=verb, launcher=waiting(seconds)) as server:
        pid = told(server)["pid"]
        os.kill(pid, signal.SIGSTOP)
        server.wait_log(f"worker {pid} was stopped by SIGSTOP: it serves no requests until")
        if verb == "serve":
            server.wait_log("and is killed")
        os.kill(pid, signal.SIGCONT)
        server.wait_log(f"worker {pid} continues")
        assert told(server)["pid"] == pid
        assert ("and is killed" in server.log()) == (verb == "serve")


def test_a_preloader_that_is_stopped_is_replaced(versions: Versions) -> None:
    """The main process does not wait for it."""
    options = ("--workers", "1", "--preload", "--max-lifetime", "86400")
    with versions.serve("single", *options, launcher=waiting(0.2)) as server:
        worker = told(server)["pid"]
        (preloader,) = set(children(server.process.pid)) - {worker}
        os.kill(preloader, signal.SIGSTOP)
        server.wait_log("the process that has loaded the application is still stopped (SIGSTOP)")
        server.wait_log("the process that has loaded the application was killed by SIGKILL")
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda: told(server)["pid"] != worker, "another worker")
