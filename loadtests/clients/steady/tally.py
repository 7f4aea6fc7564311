"""Counts of responses and errors of a steady load so far."""

from __future__ import annotations

import copy
import statistics
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any

from loadtests.clients.steady.connection import Fault, Line

MOST_TOLD = 5_000
"""Faults that are told one by one; of more only the number."""


@dataclass
class Seen:
    """Number of sightings, with the first and the last time by the monotonic clock."""

    count: int
    first: float
    last: float


@dataclass
class State:
    """Counts so far; latencies are of quick requests, in seconds.

    `hung` counts what became of requests that hang, `unlucky` what a client saw that cost it
    nothing, `connections` by the process that has made the first answer; `gap` is the longest time
    in which nobody had an answer.
    """

    requests: int = 0
    failed: int = 0
    kinds: dict[str, int] = field(default_factory=Counter)
    hung: dict[str, int] = field(default_factory=Counter)
    unlucky: dict[str, int] = field(default_factory=Counter)
    p50: float | None = None
    p99: float | None = None
    longest: float | None = None
    gap: float = 0.0
    connections: dict[int, int] = field(default_factory=Counter)
    processes: dict[int, Seen] = field(default_factory=dict)
    versions: dict[str, Seen] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)


class Tally(State):
    """The state as many threads count it. Times are of the clock that all processes share."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self._quick: list[float] = []
        self._last = 0.0

    def answered(self, line: Line, seconds: float, *, quick: bool) -> None:
        """A request was answered as it must be; `quick` ones tell how long it takes."""
        now = time.monotonic()
        with self.lock:
            self.requests += 1
            if self._last:
                self.gap = max(self.gap, now - self._last)
            self._last = now
            if quick:
                self._quick.append(seconds)
            if line.answers == 1:
                self.connections[line.process] += 1
            processes, versions = self.processes, self.versions
            for seen in (
                processes.setdefault(line.process, Seen(0, now, now)),
                versions.setdefault(line.served, Seen(0, now, now)),
            ):
                seen.count += 1
                seen.last = now

    def lost(self, fault: Fault, client: str, line: Line | None, opened: float) -> None:
        """A request of a client has failed; or only the attempt to connect."""
        fault.sent, fault.opened = client, round(opened, 3)
        fault.at, fault.began = round(time.monotonic(), 3), round(fault.began, 3)
        if line:
            fault.port, fault.process, fault.answers = line.port, line.process, line.answers
        with self.lock:
            self.failed += fault.requests
            self.kinds[fault.kind] += fault.requests
            if len(self.faults) < MOST_TOLD:
                # What it was raised in needs memory.
                self.faults.append(copy.copy(fault))

    def count(self, what: str) -> None:
        """Something happened that costs nobody anything, but should be known."""
        with self.lock:
            self.unlucky[what] += 1

    def told(self, *, faults: bool) -> dict[str, Any]:
        """The state by the names of its parts; with all `faults`, or without."""
        with self.lock:
            quick = sorted(self._quick)
            if quick:
                twice = quick if len(quick) > 1 else 2 * quick
                cuts = statistics.quantiles(twice, n=1000, method="inclusive")
                self.p50, self.p99, self.longest = cuts[499], cuts[989], quick[-1]
            told = {one.name: getattr(self, one.name) for one in fields(State)}
            return copy.deepcopy(told if faults else {**told, "faults": []})
