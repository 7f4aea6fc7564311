"""The pytest plugin for tests that hang: stacks of all processes, and their end."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

from tests.testkit.client import HANG
from tests.testkit.process import lives
from tests.testkit.server import ROOT, run, wait_for

#: Variables that hold our own classes, whose `wait` has a limit.
OWN = ("server", "program", "proxy", "uwsgi", "one", "first", "self")

PROGRAM = '''
import ctypes, subprocess, sys, threading, time
from pathlib import Path

import pytest

import tests.support.hangs

tests.support.hangs.GRACE = GRACE


@pytest.fixture
def child():
    """A process and one that it has left behind."""
    said = "import os, time; os.write(1, b'%d ' % os.getpid())"
    code = said + "; os.fork() and {end}; time.sleep(600)"
    for end in ("None", "os._exit(0)"):
        with Path("children").open("a") as file:
            subprocess.Popen([sys.executable, "-c", code.format(end=end)], stdout=file)
    while len(Path("children").read_text().split()) < 2:
        time.sleep(0.01)


@pytest.fixture
def slow():
    yield
    time.sleep(600)


def test_call(child):
    threading.Lock().acquire() and time.sleep(600)


def test_teardown_of_a_failure(slow):
    assert False


def test_without_the_interpreter(child):
    mutex = ctypes.create_string_buffer(200)
    for _ in range(2):
        ctypes.PyDLL(None).pthread_mutex_lock(mutex)


def test_last():
    pass
'''


def run_tests(folder: Path, *words: str, grace: float) -> str:
    """The output of a run of `PROGRAM`, of which nothing but a stranger's process is left."""
    (folder / "test_it.py").write_text(f"GRACE = {grace}\n{PROGRAM}")
    options = (
        "-c",
        "/dev/null",
        "--rootdir",
        str(folder),
        "--timeout",
        "5",
        "-p",
        "tests.support.hangs",
    )
    stranger = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    try:
        command = (sys.executable, "-m", "pytest", *options, *words, "test_it.py")
        # py-spy looks at each process, one after another: a busy machine takes longer than HANG.
        done = run(*command, cwd=folder, timeout=2 * HANG)
        assert done.returncode, done.stdout
        assert stranger.poll() is None
    finally:
        stranger.communicate(timeout=10)
    output = done.stdout + done.stderr
    seen = {int(pid) for pid in re.findall(r"^Process (\d+), child of", output, re.MULTILINE)}
    assert {int(pid) for pid in (folder / "children").read_text().split()} & seen
    wait_for(lambda: not any(map(lives, seen)), "the end of the processes")
    return output


def test_a_hang_is_reported_and_ended(tmp_path: Path) -> None:
    # A report takes longer than the other test's grace where the machine is busy.
    output = run_tests(tmp_path, "-k", "call or failure or last", grace=HANG)
    assert "2 failed, 1 passed, 1 deselected, 1 error" in output
    for name in ("FAILED test_it.py::test_call", "ERROR test_it.py::test_teardown_of_a_failure"):
        assert f"{name} - Failed: Timeout (>5.0s)" in output
    # Of the child, of its own child, and of the one whose parent has ended.
    assert output.count("<module> (<string>:1)") == 3


def test_a_hang_in_native_code_is_ended(tmp_path: Path) -> None:
    """By the watchdog; another worker runs the other tests."""
    words = ("-p", "tests.support.scheduling", "-n", "1", "--dist", "loadgroup")
    output = run_tests(tmp_path, *words, "-k", "interpreter or last", grace=2)
    assert "Timeout (>7.0s) of 'test_it.py::test_without_the_interpreter'" in output
    assert "Fatal Python error: Aborted" in output
    assert "crashed while running 'test_it.py::test_without_the_interpreter'" in output
    assert "1 failed, 1 passed" in output


def test_every_wait_has_a_limit() -> None:
    """Of processes and threads: `subprocess.run`, `wait`, `communicate`, `join`."""
    assert unlimited(Path(__file__), "process.wait()\nsubprocess.run(x)") == [
        "test_hangs_plugin.py:1: process.wait()",
        "test_hangs_plugin.py:2: subprocess.run(x)",
    ]
    paths = sorted({*(ROOT / "tests").rglob("*.py")} - {*(ROOT / "tests/apps").rglob("*.py")})
    found = map(unlimited, paths)
    assert [line for lines in found for line in lines] == []


def unlimited(path: Path, text: str = "") -> list[str]:
    """The calls of a file that wait without a limit."""
    found = []
    for node in ast.walk(ast.parse(text or path.read_text())):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, of = node.func.attr, ast.unparse(node.func.value)
        if of == "subprocess":
            waits = name in ("run", "call", "check_call", "check_output")
        else:
            waits = name in ("wait", "join", "communicate") and not node.args and of not in OWN
        if waits and not {"timeout", None} & {keyword.arg for keyword in node.keywords}:
            found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    return found
