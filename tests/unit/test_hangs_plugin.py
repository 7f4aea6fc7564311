"""The pytest plugin for tests that hang: stacks of all processes, and their end."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.testkit.client import HANG
from tests.testkit.process import lives
from tests.testkit.server import run, wait_for

PROGRAM = '''
import subprocess, sys, threading, time
from pathlib import Path

import pytest

import tests.support.hangs

tests.support.hangs.GRACE = {grace}


@pytest.fixture
def child():
    """A process and one that it has left behind."""
    said = "import os, time; os.write(1, b'%d ' % os.getpid())"
    code = said + "; os.fork() and END; time.sleep(600)"
    for end in ("None", "os._exit(0)"):
        with Path("children").open("a") as file:
            subprocess.Popen([sys.executable, "-c", code.replace("END", end)], stdout=file)
    while len(Path("children").read_text().split()) < 2:
        time.sleep(0.01)


def test_call(child):
    threading.Lock().acquire() and time.sleep(600)


def test_last():
    pass
'''


def test_a_hang_is_reported_and_ended(tmp_path: Path) -> None:
    # A report takes longer than the usual grace where the machine is busy.
    (tmp_path / "test_it.py").write_text(PROGRAM.format(grace=HANG))
    options = ("-c", "/dev/null", "--rootdir", str(tmp_path), "--timeout", "5")
    words = (*options, "-ppytest_timeout", "-ptests.support.hangs", "test_it.py")
    # Plugins of others take most of the time.
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    stranger = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    try:
        # py-spy looks at each process, one after another: a busy machine takes longer than HANG.
        command = (sys.executable, "-m", "pytest", *words)
        done = run(*command, cwd=tmp_path, env=env, timeout=2 * HANG)
        assert done.returncode, done.stdout
        assert stranger.poll() is None
    finally:
        stranger.communicate(timeout=10)
    output = done.stdout + done.stderr
    seen = {int(pid) for pid in re.findall(r"^Process (\d+), child of", output, re.MULTILINE)}
    assert {int(pid) for pid in (tmp_path / "children").read_text().split()} & seen
    wait_for(lambda: not any(map(lives, seen)), "the end of the processes")
    assert "1 failed, 1 passed" in output
    assert "FAILED test_it.py::test_call - Failed: Timeout (>5.0s)" in output
    # Of the child, of its own child, and of the one whose parent has ended.
    assert output.count("<module> (<string>:1)") == 3
