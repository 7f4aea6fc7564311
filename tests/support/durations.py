"""Pytest plugin that prints the twenty tests that came nearest to their limit of time.

A test has its limit (`timeout` in setup.cfg) twice: for its set-up and call together, and for its
teardown (`tests/support/hangs.py`). The share is that of the longer of both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.hangs import SETTINGS

if TYPE_CHECKING:
    from typing_extensions import Self

#: How many tests are printed.
ROWS = 20

#: What a report carries from the process that runs the test: its limit in seconds.
LIMIT = "limit_of_time"


class Time:
    """How long a test took, in seconds, and how long it may take; 0: for ever."""

    def __init__(self) -> None:
        self.limit = self.forwards = self.teardown = 0.0

    def add(self, report: pytest.TestReport) -> Self:
        self.limit = getattr(report, LIMIT, 0.0)
        if report.when == "teardown":
            self.teardown += report.duration
        else:
            self.forwards += report.duration
        return self

    @property
    def share(self) -> float:
        """The share of the limit that was needed."""
        return max(self.forwards, self.teardown) / self.limit if self.limit else 0.0


class Durations:
    """Collects the durations of all tests where the results come together, and prints them."""

    def __init__(self) -> None:
        self._times = defaultdict[str, Time](Time)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the duration of one phase of one test."""
        self._times[report.nodeid].add(report)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the tests that came nearest to their limit."""
        nearest = sorted(self._times.items(), key=lambda item: item[1].share, reverse=True)[:ROWS]
        if len(self._times) > ROWS:
            terminalreporter.section(f"slowest {len(nearest)} tests, with their share of the limit")
            for test, time in nearest:
                # Without the group of pytest-xdist.
                name = test.partition("@")[0]
                share = f"{time.share:6.1%} of {time.limit:.0f} s"
                seconds = f"{time.forwards:6.1f} s + {time.teardown:5.1f} s teardown"
                terminalreporter.write_line(f"{share}: {seconds}  {name}")


def pytest_configure(config: pytest.Config) -> None:
    """Collect in the process that prints."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Give the report of a phase the limit of its test."""
    report = yield
    if SETTINGS in item.stash:
        setattr(report, LIMIT, item.stash[SETTINGS].timeout or 0.0)
    return report
