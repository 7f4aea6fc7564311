"""Connect, processing and total time of requests: curves, quantiles, and long waits."""

from __future__ import annotations

from collections.abc import Iterable

from loadtests.measure import histogram

PARTS = ("connect", "processing", "total")
"""Until the connection is there; from then to the end of the answer; both."""
SHARES = (0.0, 0.5, 1.0, *(2.0 * share for share in range(1, 50)), 99.0, 99.5, 100.0)
"""Percent of the requests, ordered by their time, that a curve has a point for."""
QUANTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "max": 100.0}

REPEATS = (1, 3, 7, 15, 31)
"""Seconds after which Linux sends a SYN again: the first after one, each next after twice that."""
EARLY, LATE = 0.98, 0.35
"""How much of that has passed at least, and seconds after it within which who waited is served."""


def curve(encoded: str) -> dict[float, float]:
    """Milliseconds within which so many percent of the requests of a histogram were done."""
    found = histogram.merge([encoded]).get_percentile_to_value_dict(list(SHARES))
    return {share: value / 1e3 for share, value in found.items()}


def repeats(connect_seconds: float) -> int:
    """How many SYNs were sent again until the connection was there; 0 if time does not tell so.

    Who finds the queue of a listening socket full hears nothing, and asks again after 1 s, 3 s, …
    """
    for count, after in enumerate(REPEATS, 1):
        if after * EARLY <= connect_seconds <= after + LATE:
            return count
    return 0


def repeated(connect_us: Iterable[float]) -> dict[str, int]:
    """How many requests waited for how many repeated SYNs: their number is the key."""
    found: dict[str, int] = {}
    for time in connect_us:
        if count := repeats(time / 1e6):
            found[str(count)] = found.get(str(count), 0) + 1
    return found
