"""The result of a load as its client saw it: counts, times, errors."""

from __future__ import annotations

from dataclasses import dataclass

SATURATED = 0.97
"""The share of its core from which on the client, not the server, limits requests per second."""


@dataclass(frozen=True)
class Load:
    """What one run of a client saw.

    `octets` were received, latencies are in microseconds, `busy` is the client's share of one core.
    `answer_us` is the mean time to the beginning of an answer, where the client looks for it.

    wrk 4.1 corrects its latencies for coordinated omission: a stall counts for every request that
    the connection would have sent meanwhile.
    """

    requests: int
    seconds: float
    octets: int
    mean_us: float
    p50_us: float
    p99_us: float
    max_us: float
    errors: dict[str, int]
    busy: float
    answer_us: float = 0.0

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds
