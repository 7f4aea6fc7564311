"""Delay, rate and loss of the load lab's network links, on a simulated clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest

from loadtests.network import wire


class End:
    """One end of the link: frames that have arrived, and frames that were sent, with the time."""

    def __init__(self) -> None:
        self.clock: Clock
        self.arrived: deque[bytes] = deque()
        self.sent: list[tuple[float, bytes]] = []

    def recv(self, _size: int) -> bytes:
        if not self.arrived:
            raise BlockingIOError
        return self.arrived.popleft()

    def send(self, frame: bytes) -> None:
        self.sent.append((self.clock.now, frame))


class Clock:
    """A clock that only `select` moves, and the moments at which frames arrive at one end."""

    def __init__(self, end: End, arrivals: dict[float, list[bytes]]) -> None:
        self.now = 0.0
        self._end = end
        self._arrivals = deque(sorted(arrivals.items()))

    def monotonic(self) -> float:
        return self.now

    def select(
        self, read: Sequence[Any], _write: object, _error: object, wait: float | None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Move on to the next arrival, or by `wait`. With neither, standard input has ended."""
        if self._arrivals and (wait is None or self._arrivals[0][0] <= self.now + wait):
            self.now, frames = self._arrivals.popleft()
            self._end.arrived.extend(frames)
            return [self._end], [], []
        if wait is None:
            return [read[2]], [], []
        # Just beyond it: the sum of two floats may be rounded down.
        self.now += wait + 1e-12
        return [], [], []


def carried(
    monkeypatch: pytest.MonkeyPatch,
    arrivals: dict[float, list[bytes]],
    *,
    delay: float,
    loss: float = 0.0,
    rate: float = 0.0,
) -> list[tuple[float, bytes]]:
    """When each of these frames, which arrive at one end at these times, leaves the other end."""
    one, other = End(), End()
    clock = one.clock = other.clock = Clock(one, arrivals)
    monkeypatch.setattr(wire, "time", clock)
    monkeypatch.setattr(wire, "select", clock)
    wire.carry(one, other, delay, loss, rate)  # type: ignore[arg-type]
    assert one.sent == []
    return other.sent


def test_each_frame_is_delayed(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = carried(monkeypatch, {1.0: [b"a", b"b"], 1.005: [b"c"]}, delay=0.013)
    assert [frame for _, frame in sent] == [b"a", b"b", b"c"]
    assert [moment for moment, _ in sent] == pytest.approx([1.013, 1.013, 1.018])


def test_frames_follow_each_other_at_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 10 Mbit/s 1,250 bytes take a millisecond; a pause is not made up for."""
    page = [bytes([number]) * 1250 for number in range(3)]
    sent = carried(monkeypatch, {0.0: page, 1.0: [b"x" * 2500]}, delay=0.013, rate=10e6)
    assert [moment for moment, _ in sent] == pytest.approx([0.014, 0.015, 0.016, 1.015])
    assert [frame for _, frame in sent[:3]] == page


def test_a_share_of_the_frames_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    chances = iter([0.5, 0.01, 0.02, 0.7])
    monkeypatch.setattr("random.random", lambda: next(chances))
    sent = carried(monkeypatch, {0.0: [b"a", b"b", b"c", b"d"]}, delay=0.001, loss=0.02)
    assert [frame for _, frame in sent] == [b"a", b"c", b"d"]
