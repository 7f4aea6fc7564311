"""The result of a load as its client saw it: counts, times, errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

ERRORS = ("connect", "read", "write", "status", "timeout")
"""Kinds of errors."""
KINDS = ("", *ERRORS)
"""The same by number; 0 is what was right."""
SATURATED = 0.97
"""The share of its core from which on the client, not the server, limits requests per second."""


@dataclass(frozen=True)
class Load:
    """Result of one run of a client.

    `octets` were received, latencies are in microseconds, `busy` is the client's share of one core.
    `answer_us` is the mean time to the beginning of an answer, where the client looks for it.

    wrk 4.1 corrects its latencies for coordinated omission: a stall counts for every request that
    the connection would have sent meanwhile.
    """

    requests: int
    seconds: float
    octets: int
    mean_us: float = 0.0
    p50_us: float = 0.0
    p99_us: float = 0.0
    max_us: float = 0.0
    errors: dict[str, int] = field(default_factory=dict)
    busy: float = 0.0
    answer_us: float = 0.0

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds


def happened(errors: Mapping[str, int]) -> dict[str, int]:
    """The errors that have happened at all."""
    return {kind: count for kind, count in errors.items() if count}


def of_times(
    times: Iterable[float],
    seconds: float,
    octets: int,
    errors: Mapping[str, int],
    cpu_seconds: float,
    answers: Iterable[float] = (),
) -> Load:
    """The load of requests that took these times, in microseconds; `answers` to their beginning."""
    ordered = sorted(times)
    count = len(ordered)
    if not count:
        return Load(0, seconds, octets, errors=dict(errors), busy=cpu_seconds / seconds)
    last = count - 1
    return Load(
        requests=count,
        seconds=seconds,
        octets=octets,
        mean_us=sum(ordered) / count,
        p50_us=ordered[last // 2],
        p99_us=ordered[last * 99 // 100],
        max_us=ordered[last],
        errors=dict(errors),
        busy=cpu_seconds / seconds,
        answer_us=sum(answers) / count,
    )
