"""Fixtures of the tests of the load lab: a command of the lab in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import IO

import pytest

from loadtests import __main__


def written(_: object, file: IO[str], **__: object) -> None:
    """Write a figure without anything in it."""
    file.write("<svg></svg>")


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs the lab in this process, which has imported it; returns the exit code."""
    monkeypatch.setattr("os.sched_setaffinity", lambda process, chosen: None)
    monkeypatch.setattr("loadtests.measure.disturbance.adopt", lambda: None)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    # Figures are made, but not written as SVG, which takes half of the time of a small run.
    # Written are those of stored results (test_reporting.py) and of the guide
    # (test_installation.py).
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", written)

    def main(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["loadtests", *arguments])
        return __main__.main()

    return main
