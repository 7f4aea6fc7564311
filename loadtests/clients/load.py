"""Requests over N connections, one at a time on each, and the result: counts, times, errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ERRORS = ("connect", "read", "write", "status", "timeout")
"""Kinds of errors."""
KINDS = ("", *ERRORS)
"""The same by number; 0 is what was right."""
SATURATED = 0.97
"""The share of its core from which on the client, not the server, limits requests per second."""


@dataclass(frozen=True)
class Job:
    """A closed load: on each of `connections` one request after the other, for `seconds`.

    Without `keep` each request has a connection of its own. `host` is an IPv4 address. Only wrk
    sends `depth` requests at once, `headers` and a `body`.
    """

    port: int
    seconds: float = 1.0
    connections: int = 1
    target: str = "/"
    keep: bool = True
    host: str = "127.0.0.1"
    depth: int = 1
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}{self.target}"


@dataclass(frozen=True)
class Load:
    """Result of one run of a client.

    `octets` were received, latencies are in microseconds, `busy` is the client's share of one core.
    `answer_us` is the mean time to the beginning of an answer, where the client looks for it. Of
    `opened` connections, where it counts them, the server closed `unsaid` behind an answer without
    saying so, and their next requests were sent again.

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
    opened: int = 0
    unsaid: int = 0

    @property
    def rate(self) -> float:
        return self.requests / self.seconds

    @property
    def is_silent(self) -> bool:
        """Whether nothing was answered in time, and nothing else failed."""
        return not self.requests and not self.errors.keys() - {"timeout"}


def counted(
    requests: int,
    seconds: float,
    octets: int,
    errors: Mapping[str, int],
    cpu_seconds: float,
    **more: Any,
) -> Load:
    """The load that a client has counted, with those errors that have happened at all."""
    return Load(
        requests,
        seconds,
        octets,
        errors={kind: count for kind, count in errors.items() if count},
        busy=cpu_seconds / seconds if seconds else 0.0,
        **more,
    )


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
    found: dict[str, float] = {}
    if ordered:
        last = len(ordered) - 1
        found = {
            "mean_us": sum(ordered) / len(ordered),
            "p50_us": ordered[last // 2],
            "p99_us": ordered[last * 99 // 100],
            "max_us": ordered[last],
            "answer_us": sum(answers) / len(ordered),
        }
    return counted(len(ordered), seconds, octets, errors, cpu_seconds, **found)
