"""Candidate configurations of `advise` (mode, workers, threads), and a model of their results."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

WORKERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
THREADS = (1, 2, 4, 8, 16, 32, 64)
PATIENT = 8
"""Workers for each core, at most, of a command that may serve one request at a time with each."""
MODES = ("single", "forking", "threading", "gevent")
NAMES = ("mode", "workers", "threads", "preload")
"""The options that are advised."""
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


@dataclass(frozen=True, order=True)
class Configuration:
    """`threads` are those of a worker, in mode threading.

    Of a server of others `mode` is its name, and `told` what its command is told of these numbers.
    """

    mode: str
    workers: int = 1
    threads: int = 1
    preload: bool = False
    told: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """As in tables: `threading 2 × 8` is two workers of eight threads."""
        if self.told is not None:
            return " × ".join([self.mode, *self.values().values()]).replace(" × ", " ", 1)
        special = {"single": "", "threading": f" {self.workers} × {self.threads}"}
        numbers = special.get(self.mode, f" {self.workers}")
        return self.mode + numbers + (" preloaded" if self.preload else "")

    @property
    def at_once(self) -> float:
        """Requests that it has in flight at the same time, at most."""
        unknown = self.told is not None and "threads" not in self.told
        return math.inf if unknown or self.mode == "gevent" else self.workers * self.threads

    @property
    def has_workers(self) -> bool:
        """Whether its number of workers is known."""
        return self.told is None or "workers" in self.told

    @property
    def size(self) -> tuple[int, bool, int, bool]:
        """Smaller is simpler: processes, gevent, which patches, then threads, and preloading."""
        return self.workers, self.mode == "gevent", self.threads, self.preload

    def values(self) -> dict[str, str]:
        """Its options as poorhttp reads them, or the numbers that its command is told."""
        if self.told is not None:
            return {name: str(getattr(self, name)) for name in self.told}
        values = {"mode": self.mode, "workers": str(self.workers)}
        if self.mode == "threading":
            values["threads"] = str(self.threads)
        return values | ({"preload": "on"} if self.preload else {})

    def arguments(self) -> list[str]:
        """Its options on the command line; what a file says otherwise counts no more."""
        values = {"preload": "off", **self.values()}
        return [f"--{name}={text}" for name, text in values.items()]


def space(
    cores: int, modes: Iterable[str], max_workers: int = 0, max_threads: int = 0
) -> list[Configuration]:
    """All candidates that are not preloaded, smaller ones first."""
    workers, threads = _counts(cores, max_workers, max_threads)
    made = {
        "single": [Configuration("single")],
        # One worker that runs one request at a time is `single`.
        "forking": [Configuration("forking", count) for count in workers if count > 1],
        "threading": [Configuration("threading", w, t) for w in workers for t in threads],
        "gevent": [Configuration("gevent", count) for count in workers],
    }
    return sorted((one for mode in modes for one in made[mode]), key=lambda one: one.size)


def _counts(cores: int, max_workers: int, max_threads: int) -> tuple[list[int], list[int]]:
    most = max_workers or max(2 * cores, 4)
    threads = [count for count in THREADS if count <= (max_threads or THREADS[-1])]
    return [count for count in WORKERS if count <= most], threads


def of_command(
    name: str, told: tuple[str, ...], cores: int, max_workers: int, max_threads: int
) -> list[Configuration]:
    """All candidates of a server of others; one, if its command is told no numbers."""
    most = max_workers or (0 if "threads" in told else PATIENT * cores)
    workers, threads = _counts(cores, most, max_threads)
    return [
        Configuration(name, w, t, told=told)
        for w in (workers if "workers" in told else [1])
        for t in (threads if "threads" in told else [1])
    ]


def distance(one: Configuration, other: Configuration) -> float:
    """How little one says about the other: squared, in doublings."""
    workers = math.log2(one.workers / other.workers)
    threads = math.log2(one.threads / other.threads)
    apart = one.mode != other.mode and not {one.mode, other.mode} <= {*MODES[:3]}
    return workers**2 + threads**2 / 4 * (not apart) + 6.0 * apart


def sensible(candidates: Iterable[Configuration], cores: int, share: float) -> list[Configuration]:
    """Those that never have more computing workers than cores.

    Workers that run few requests at a time compute for a `share` of it, and may be more.
    """

    def computing(one: Configuration) -> float:
        waits = one.mode == "forking" or one.told
        return one.workers * (min(share * one.threads, 1) if waits else 1)

    return [one for one in candidates if computing(one) <= cores]


@dataclass(frozen=True)
class Probe:
    """A request alone: how long it takes and how much of that is computing, in seconds."""

    service: float
    cpu: float
    pss: int

    @property
    def share(self) -> float:
        return min(self.cpu / self.service, 1.0)

    @property
    def kind(self) -> str:
        if self.share >= COMPUTES or self.service - self.cpu <= WAKING:
            return COMPUTING
        return WAITING if self.share <= WAITS else BOTH

    def throughput(self, one: Configuration, connections: int, cores: int) -> float:
        """Requests per second, if a process computes one at a time and the rest is waiting."""
        waiting = min(connections, one.at_once) / self.service
        computing = min(one.workers if one.has_workers else cores, cores) / min(
            self.cpu, self.service
        )
        both = (waiting**-SOFTNESS + computing**-SOFTNESS) ** (-1 / SOFTNESS)
        contended = 0.999 - CONTENTION * self.share
        doublings = (one.threads - 1).bit_length()
        return float(both * 0.99 ** (one.workers - 1) * contended**doublings)

    def latency(self, capacity: float, rate: float) -> float:
        """Seconds within which nearly all are answered, by a server of that capacity."""
        used = min(rate / capacity, 0.99)
        return self.service * (1 + used / (1 - used))

    def memory(self, one: Configuration) -> float:
        """PSS in bytes: some is shared by all workers, and more if it was loaded before."""
        each = 0.35 if one.preload else 0.6
        return self.pss * (0.4 + each * one.workers) + 60_000 * one.workers * one.threads
