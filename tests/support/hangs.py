"""Pytest plugin that reports and ends tests which exceed the timeout.

First stage: at the timeout the stacks of all threads and of all descendant processes become a
section of the test's report, the descendants are killed and the test fails. Second stage: a
watchdog (`python -m tests.support.hangs PID`) does the same from outside if the test has not ended
`GRACE` seconds later, for instance because C code holds the GIL. It aborts the process that runs
the test: faulthandler prints its stacks, and pytest-xdist names the test and starts another worker.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import psutil
import pytest
import pytest_timeout

from tests.testkit.process import lives

#: Seconds from the timeout to the second stage: enough for the report and for a teardown.
GRACE = 60.0

#: Seconds that py-spy has for one process, and that a process has for ending.
LIMIT = 10.0

#: Environment variable that marks the descendants of a process that runs tests, orphans included.
MARK = "PYTEST_PROCESS"

PY_SPY = Path(sysconfig.get_path("scripts"), "py-spy")


class Watchdog:
    """The process that ends this one if it has not said in time that a test has ended."""

    def __init__(self) -> None:
        os.environ[MARK] = f"{os.getpid()}-{time.time_ns()}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.hangs", str(os.getpid())],
            cwd=Path(__file__).resolve().parents[2],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def arm(self, seconds: float, test: str) -> None:
        """End this process in so many seconds; 0: never."""
        assert self._process.stdin
        # Short enough for the kernel to pass it in one piece.
        line = f"{seconds} {ascii(test)[:1000]}\n"
        os.write(self._process.stdin.fileno(), line.encode())

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(LIMIT)


WATCHDOG = pytest.StashKey[Watchdog]()
SETTINGS = pytest.StashKey[Any]()


def pytest_configure(config: pytest.Config) -> None:
    """Start the watchdog, while standard error is not captured yet."""
    if config.getoption("dist", "no") == "no" or hasattr(config, "workerinput"):
        config.stash[WATCHDOG] = Watchdog()


def pytest_unconfigure(config: pytest.Config) -> None:
    if WATCHDOG in config.stash:
        config.stash[WATCHDOG].close()


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    """Set the timers of both stages; None: the first one is pytest-timeout's own."""
    item.stash[SETTINGS] = settings
    watchdog = item.config.stash[WATCHDOG]
    if not pytest_timeout.is_debugging():
        watchdog.arm(settings.timeout + GRACE, item.nodeid)
    if settings.method != "signal":
        return None

    def end(_number: int, _frame: FrameType | None) -> None:
        __tracebackhide__ = True
        if pytest_timeout.is_debugging():
            return
        tested = psutil.Process()
        item.add_report_section("timeout", "stacks", threads() + report(descendants(tested)))
        # A server may start others while it is killed.
        end = time.monotonic() + LIMIT
        while (left := descendants(tested)) and time.monotonic() < end:
            kill(left)
        pytest.fail(f"Timeout (>{settings.timeout}s)")

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_cancel_timer(item: pytest.Item) -> bool | None:
    """Cancel the timers of both stages."""
    if SETTINGS not in item.stash:
        return None
    item.config.stash[WATCHDOG].arm(0, item.nodeid)
    if item.stash[SETTINGS].method != "signal":
        return None
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Set the timers again: pytest-timeout cancels them when a test fails."""
    if SETTINGS in item.stash:
        item.ihook.pytest_timeout_cancel_timer(item=item)
        item.ihook.pytest_timeout_set_timer(item=item, settings=item.stash[SETTINGS])


@pytest.hookimpl
def pytest_enter_pdb(config: pytest.Config) -> None:
    """Let a debugged test take any time."""
    config.stash[WATCHDOG].arm(0, "")


def threads() -> str:
    """The stacks of all threads of this process but the current one: pytest prints that one's."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames()
    del frames[threading.get_ident()]
    return "".join(
        f"Thread {ident} ({names.get(ident)})\n{''.join(traceback.format_stack(frame))}\n"
        for ident, frame in frames.items()
    )


def descendants(tested: psutil.Process) -> list[psutil.Process]:
    """The living descendants of a process that runs tests, but for its watchdog.

    Once `tested` has ended nothing is known of them but `MARK`: its number may be another's.
    """
    found = set()
    with suppress(psutil.Error):
        if tested.is_running():
            found = set(tested.children(recursive=True))
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARK) == os.environ[MARK]:
                found.add(process)
    return [one for one in found if one != tested and not is_watchdog(one) and lives(one.pid)]


def is_watchdog(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.cmdline()[1:3] == ["-m", "tests.support.hangs"]
    return False


def report(processes: list[psutil.Process]) -> str:
    """What processes are doing."""
    return "".join(map(describe, sorted(processes, key=lambda one: one.pid)))


def describe(process: psutil.Process) -> str:
    """The command line of a process, its threads as the kernel sees them, its Python stacks."""
    try:
        title = shlex.join(process.cmdline()) or process.name()
        lines = [f"Process {process.pid}, child of {process.ppid()}: {title}"]
    except psutil.Error as error:
        return f"Process {process.pid}: {error}\n\n"
    for task in sorted(Path(f"/proc/{process.pid}/task").glob("*")):
        with suppress(OSError):
            name, _, rest = (task / "stat").read_text().partition(" (")[2].rpartition(") ")
            lines.append(f"  thread {task.name} ({name}): state {rest[0]}")
            lines[-1] += f", wchan {(task / 'wchan').read_text()}"
            lines[-1] += f", system call {(task / 'syscall').read_text().strip()}"
    command = [str(PY_SPY), "dump", "--nonblocking", "--pid", str(process.pid)]
    try:
        spied = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
        lines.append(spied.stdout.rstrip() or f"  py-spy: {spied.stderr.partition(chr(10))[0]}")
    except (subprocess.TimeoutExpired, OSError) as error:
        lines.append(str(error))
    return "\n".join(lines) + "\n\n"


def kill(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def main() -> None:
    """Wait for the limit of a test and end the process that runs it, or end with that process."""
    # The process itself, not its number, and only as long as it is this one's parent.
    tested = psutil.Process(int(sys.argv[1]))
    parent = os.pidfd_open(tested.pid)
    if os.getppid() != tested.pid:
        return
    limit, test = 0.0, ""
    while True:
        ready, _, _ = select.select([sys.stdin, parent], [], [], limit or None)
        if not ready:
            break
        line = os.read(sys.stdin.fileno(), 1 << 20)
        if parent in ready or not line:
            return
        seconds, _, test = line.decode().splitlines()[-1].partition(" ")
        limit = float(seconds)
    below = descendants(tested)
    print(
        f"\nTimeout (>{limit}s) of {test} in {tested}\n{report(below)}", file=sys.stderr, flush=True
    )
    # faulthandler prints the stacks of all threads, whoever has the GIL.
    signal.pidfd_send_signal(parent, signal.SIGABRT)
    select.select([parent], [], [], LIMIT)
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(parent, signal.SIGKILL)
    select.select([parent], [], [], LIMIT)
    kill({*below, *descendants(tested)})


if __name__ == "__main__":
    main()
