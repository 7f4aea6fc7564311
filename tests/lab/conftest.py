"""Fixtures of the tests of the load lab: a command of the lab in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from loadtests import __main__


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs the lab in this process, which has imported it; returns the exit code."""
    monkeypatch.setattr("os.sched_setaffinity", lambda process, chosen: None)
    monkeypatch.setattr("loadtests.measure.disturbance.adopt", lambda: None)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    # Figures are made, but not drawn, which takes half of the time of a small run. Those of stored
    # results (test_reporting.py) and of the guide (test_installation.py) are.
    monkeypatch.setattr("loadtests.reporting.figures.chart.Canvas.svg", lambda _: "<svg></svg>")

    def main(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["loadtests", *arguments])
        return __main__.main()

    return main
