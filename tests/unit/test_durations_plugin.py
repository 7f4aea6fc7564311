"""The pytest plugin that prints the tests that came nearest to their limit of time."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.testkit.server import run

#: One test needs a share of its own limit, another of the limit of all.
PROGRAM = """
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
    (tmp_path / "test_it.py").write_text(PROGRAM)
    options = ("-c", "/dev/null", "--rootdir", str(tmp_path), "--timeout", "200", "-n", "1")
    used = ("xdist.plugin", "pytest_timeout", "tests.support.hangs", "tests.support.durations")
    words = (*options, *(f"-p{name}" for name in used), "test_it.py")
    # Plugins of others take most of the time.
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = run(sys.executable, "-m", "pytest", *words, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    _, _, table = done.stdout.partition("slowest 20 tests, with their share of the limit")
    first, second, *others = table.splitlines()[1:21]
    assert "% of 5 s:" in first
    assert first.endswith("s teardown  test_it.py::test_teardown")
    assert "% of 200 s:" in second
    assert second.endswith("s teardown  test_it.py::test_call")
    assert len(others) == 18
    assert all("test_it.py::test_other" in row for row in others)
