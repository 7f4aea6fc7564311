"""An estimate of every candidate's throughput from one measurement of waiting and computing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from loadtests.advise.configuration import Configuration

SOFTNESS = 4
"""How sharply the lower of two limits wins: both are missed a little where they meet."""
CONTENTION = 0.015
"""What each doubling of the threads costs an application that only computes."""
COMPUTES = 0.8
WAITS = 0.2
"""Shares of computing from which on, and up to which, an application is said to do only one."""
WAKING = 0.0005
"""Seconds besides computing that are not the application's: waking threads, and the way there."""
COMPUTING, WAITING, BOTH = "it computes", "it waits", "it computes and waits"


@dataclass(frozen=True)
class Probe:
    """A request alone: how long it takes and how much of that is computing, in seconds."""

    service: float
    cpu: float
    pss: int

    @property
    def share(self) -> float:
        """Of the time that is spent computing."""
        return min(self.cpu / self.service, 1.0)

    @property
    def kind(self) -> str:
        """In words."""
        if self.share >= COMPUTES or self.service - self.cpu <= WAKING:
            return COMPUTING
        return WAITING if self.share <= WAITS else BOTH


def throughput(
    probe: Probe, candidates: Iterable[Configuration], connections: int, cores: int
) -> dict[Configuration, float]:
    """Requests per second, if a process computes one at a time and the rest is waiting."""
    cpu = min(probe.cpu, probe.service)
    contended = 0.999 - CONTENTION * probe.share
    guesses = {}
    for one in candidates:
        waiting = min(connections, one.at_once) / probe.service
        computing = min(one.workers, cores) / cpu
        both = (waiting**-SOFTNESS + computing**-SOFTNESS) ** (-1 / SOFTNESS)
        threads = (one.threads - 1).bit_length()
        guesses[one] = both * 0.99 ** (one.workers - 1) * contended**threads
    return guesses


def latency(probe: Probe, capacity: float, rate: float) -> float:
    """Seconds within which nearly all are answered, by a server of that capacity."""
    used = min(rate / capacity, 0.99)
    return probe.service * (1 + used / (1 - used))


def memory(probe: Probe, candidates: Iterable[Configuration]) -> dict[Configuration, float]:
    """PSS in bytes: some is shared by all workers, and more if it was loaded before."""
    guesses = {}
    for one in candidates:
        each = 0.6 if not one.preload else 0.35
        stacks = 60_000 * one.workers * one.threads
        guesses[one] = probe.pss * (0.4 + each * one.workers) + stacks
    return guesses
