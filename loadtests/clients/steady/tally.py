"""Counts of responses and errors of a steady load so far."""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter
from typing import Any

from loadtests.clients.steady.connection import Fault, Line

MOST_TOLD = 5_000
"""Faults that are told one by one; of more only the number."""


class Tally:
    """Counts so far. Times are of the monotonic clock, which all processes share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.requests = 0
        self.faults: list[dict[str, Any]] = []
        self.kinds: Counter[str] = Counter()
        self.hung: Counter[str] = Counter()
        self.unlucky: Counter[str] = Counter()
        self.quick: list[float] = []
        self.connections: Counter[int] = Counter()
        self.processes: dict[int, list[float]] = {}
        self.versions: dict[str, list[float]] = {}
        self.last = 0.0
        self.gap = 0.0

    def answered(self, line: Line, seconds: float, *, quick: bool) -> None:
        """A request was answered as it must be; `quick` ones tell how long it takes."""
        now = time.monotonic()
        with self.lock:
            self.requests += 1
            if self.last:
                self.gap = max(self.gap, now - self.last)
            self.last = now
            if quick:
                self.quick.append(seconds)
            if line.answers == 1:
                self.connections[line.process] += 1
            _seen(self.processes, line.process, now)
            _seen(self.versions, line.served, now)

    def failed(self, fault: Fault, kind: str, line: Line | None, opened: float) -> None:
        """A request has failed; or only the attempt to connect."""
        with self.lock:
            self.kinds[fault.kind] += fault.requests
            if len(self.faults) < MOST_TOLD:
                told = {
                    "kind": fault.kind,
                    "what": fault.what,
                    "sent": kind,
                    "asked": fault.asked,
                    "requests": fault.requests,
                    "began": round(fault.began, 3),
                    "at": round(time.monotonic(), 3),
                    "opened": round(opened, 3),
                    "port": line.port if line else 0,
                    "process": line.process if line else 0,
                    "answers": line.answers if line else 0,
                }
                self.faults.append(told)

    def count(self, what: str) -> None:
        """Something happened that costs nobody anything, but should be known."""
        with self.lock:
            self.unlucky[what] += 1

    def state(self, *, faults: bool) -> dict[str, Any]:
        """As it is told; with all `faults`, or without."""
        with self.lock:
            quick = sorted(self.quick)
            return {
                "requests": self.requests,
                "failed": sum(self.kinds.values()),
                "kinds": self.kinds,
                "hung": self.hung,
                "unlucky": self.unlucky,
                "p50": _quantile(quick, 0.5),
                "p99": _quantile(quick, 0.99),
                "longest": quick[-1] if quick else None,
                "gap": self.gap,
                "connections": self.connections,
                "processes": self.processes,
                "versions": self.versions,
                "faults": self.faults if faults else [],
            }


def _seen(table: dict[Any, list[float]], key: object, now: float) -> None:
    """Counts, with the first and the last time."""
    entry = table.setdefault(key, [0, now, now])
    entry[0] += 1
    entry[2] = now


def _quantile(values: list[float], share: float) -> float | None:
    if len(values) < 2:
        return values[0] if values else None
    return statistics.quantiles(values, n=1000, method="inclusive")[round(share * 1000) - 1]
