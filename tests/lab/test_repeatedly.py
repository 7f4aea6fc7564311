"""Repeated sampling in the background (`loadtests/measure/repeatedly.py`)."""

from __future__ import annotations

import threading

import pytest

from loadtests.measure.repeatedly import Repeatedly
from tests.testkit.client import HANG


def test_at_once_and_once_more_at_the_end() -> None:
    times: list[int] = []
    first = threading.Event()

    def note() -> None:
        times.append(len(times))
        first.set()

    with Repeatedly(note, HANG):
        assert first.wait(HANG)
    assert times == [0, 1]


def test_a_failure_ends_it_and_is_told() -> None:
    times: list[int] = []

    def fail() -> None:
        times.append(len(times))
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"), Repeatedly(fail, 0.001):
        pass
    assert times == [0]
    # Not instead of what the block itself fails with.
    with pytest.raises(KeyError), Repeatedly(fail, 0.001):
        raise KeyError
