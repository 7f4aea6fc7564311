"""Tools of the tests: plugins of pytest, readers of cases, and `make programs`."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests import refusals
from tests.programs.running.application import Application
from tests.programs.running.report import judge, line
from tests.programs.running.visit import Place, Visit
from tests.support.check_each import check_each
from tests.testkit.cases.exchanges import Case, read_all
from tests.testkit.client import HANG
from tests.testkit.process import lives
from tests.testkit.server import run, wait_for

HANGING = '''
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


def run_tests(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder with the plugins for limits of time."""
    words = (
        "-c",
        "/dev/null",
        "--rootdir",
        str(folder),
        "-ppytest_timeout",
        "-ptests.support.hangs",
    )
    # Plugins of others take most of the time.
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = (sys.executable, "-m", "pytest", *words, *options, "test_it.py")
    # py-spy looks at each process, one after another: a busy machine takes longer than HANG.
    return run(*command, cwd=folder, env=env, timeout=2 * HANG)


def test_a_hang_is_reported_and_ended(tmp_path: Path) -> None:
    # A report takes longer than the usual grace where the machine is busy.
    (tmp_path / "test_it.py").write_text(HANGING.format(grace=HANG))
    stranger = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    try:
        done = run_tests(tmp_path, "--timeout", "5")
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


#: One test needs a share of its own limit, another of the limit of all.
SLOW = """
import time
import pytest

@pytest.fixture
def slow():
    yield
    time.sleep(0.2)

@pytest.mark.timeout(5)
def test_teardown(slow):
    pass

def test_call():
    time.sleep(0.3)

@pytest.mark.parametrize("number", range(20))
def test_other(number):
    pass
"""


def test_shares(tmp_path: Path) -> None:
    """Of processes that run tests, too."""
    (tmp_path / "test_it.py").write_text(SLOW)
    more = ("--timeout", "200", "-n", "1", "-pxdist.plugin", "-ptests.support.durations")
    done = run_tests(tmp_path, *more)
    assert done.returncode == 0, done.stdout + done.stderr
    _, _, table = done.stdout.partition("slowest 20 tests, with their share of the limit")
    first, second, *others = table.splitlines()[1:21]
    assert "% of 5 s:" in first
    assert first.endswith("s teardown  test_it.py::test_teardown")
    assert "% of 200 s:" in second
    assert second.endswith("s teardown  test_it.py::test_call")
    assert len(others) == 18
    assert all("test_it.py::test_other" in row for row in others)


def test_every_case_is_checked_and_each_that_fails_is_named() -> None:
    cases = [replace(read_all()[0], name=name) for name in ("one", "two", "three")]
    seen = []

    def check(case: Case) -> None:
        seen.append(case.name)
        if case.name != "two":
            raise ValueError("no good")

    named = r"(?s)2 of 3 .*: one three\none: .*no good\nthree: .*no good"
    with pytest.raises(AssertionError, match=named):
        check_each(cases, check)
    assert seen == ["one", "two", "three"]
    with pytest.raises(AssertionError, match="there is no case"):
        check_each([], check)


def test_the_page_is_up_to_date() -> None:
    _, _, made = refusals.PAGE.read_text("utf-8").partition(refusals.MARK)
    assert made == refusals.page(), "run: python -m tests.refusals"


def test_what_is_a_failure() -> None:
    seen = {"a": 1, "b": [2]}
    reference = Visit("gunicorn", seen)

    def said(visit: Visit) -> str:
        return judge([reference], visit)

    assert said(reference) == said(Visit("forking", seen)) == ""
    assert "b:\n    gunicorn: [2]\n    forking: None" in said(Visit("forking", {"a": 1}))
    assert said(Visit("forking", {**seen, "c": 3})) == "c: only under forking"
    assert said(Visit("forking", seen, fault="ended")) == "ended"
    assert "traceback" in said(Visit("forking", seen, log="Traceback"))
    # Nothing is compared with a reference that has failed.
    reference.fault = "ended"
    assert said(Visit("forking", {"a": 2})) == ""


def test_a_server_that_ends_before_it_answers(tmp_path: Path) -> None:
    class Ended(Application):
        def command(self) -> list[str]:
            return ["sh", "-c", "echo no such application; exit 4"]

    for folder in ("site", "prepared"):
        (tmp_path / folder).mkdir()
    with closing(Place("ended", Ended, tmp_path)) as place:
        visit = place.visit("forking")
    # pytest adds a line to the assertion.
    assert visit.fault.splitlines()[0] == "the server does not answer: exit code 4"
    assert visit.log == "no such application\n"
    assert "FAILED, 0 steps" in line(visit, judge([Visit("gunicorn"), visit], visit))
