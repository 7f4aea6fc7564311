"""Samples of a server under load, taken periodically: CPU time, memory, traffic."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loadtests.measure.repeatedly import Repeatedly
from loadtests.measure.resources import TICKS, cpu_clock, reaped_seconds, smaps_rollup, stat


class Traffic(NamedTuple):
    """Traffic of an interface since it exists."""

    received_octets: int = 0
    received_packets: int = 0
    sent_octets: int = 0
    sent_packets: int = 0


@dataclass(frozen=True)
class Look:
    """A sample at a time: CPU seconds and traffic since the start, bytes of memory just then."""

    time: float
    user: float
    system: float
    pss: int
    rss: int
    processes: int
    traffic: Traffic


def times(processes: Iterable[int]) -> tuple[float, float]:
    """User and system seconds of these processes and of those they have started and seen end.

    To a tick; who ends meanwhile is counted with whoever waits for him.
    """
    user = system = 0
    for process in processes:
        if fields := stat(process):
            user += int(fields[11]) + int(fields[13])
            system += int(fields[12]) + int(fields[14])
    return user / TICKS, system / TICKS


def spent(processes: Iterable[int]) -> float:
    """Both together: exact for processes that live, and to a tick for those that have ended."""
    processes = list(processes)
    total = reaped_seconds(processes)
    for process in processes:
        with contextlib.suppress(OSError):
            total += cpu_clock(process)
    return total


def parse_traffic(text: str, interface: str) -> Traffic:
    """The counters of an interface in /proc/net/dev; zeros if there is none."""
    for line in text.splitlines():
        name, colon, counters = line.partition(":")
        if colon and name.strip() == interface:
            fields = [int(field) for field in counters.split()]
            return Traffic(fields[0], fields[1], fields[8], fields[9])
    return Traffic()


def traffic(process: int, interface: str) -> Traffic:
    """The counters of an interface of the network in which a process is."""
    try:
        with open(f"/proc/{process}/net/dev", encoding="ascii") as file:
            return parse_traffic(file.read(), interface)
    except OSError:
        return Traffic()


def look(processes: Sequence[int], interface: str) -> Look:
    """Looks at these processes, of which the first tells the network."""
    user, system = times(processes)
    pss = rss = count = 0
    for process in processes:
        try:
            fields = smaps_rollup(process)
        except OSError:
            # It has ended meanwhile, as processes do that were started for a request.
            continue
        pss += fields.get("Pss", 0)
        rss += fields.get("Rss", 0)
        count += 1
    counted = traffic(processes[0], interface)
    return Look(time.monotonic(), user, system, pss, rss, count, counted)


class Sampler(Repeatedly):
    """Looks every so many seconds until the block ends. `looks` are what it has seen, in order."""

    def __init__(
        self, processes: Callable[[], Sequence[int]], interface: str, every: float
    ) -> None:
        super().__init__(self._note, every)
        self.looks: list[Look] = []
        self._processes = processes
        self._interface = interface

    def look(self) -> Look:
        """One look more."""
        return look(self._processes(), self._interface)

    def _note(self) -> None:
        if processes := self._processes():
            self.looks.append(look(processes, self._interface))
