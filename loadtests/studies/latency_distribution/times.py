"""Connect, processing and total time of requests: curves, quantiles, and long waits."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence

from loadtests.measure import histogram
from loadtests.stats.results import Spread, spread
from loadtests.store import Record
from loadtests.studies import tables

PARTS = ("connect", "processing", "total")
"""Until the connection is there; from then to the end of the answer; both."""
SHARES = (0.0, 0.5, 1.0, *(2.0 * share for share in range(1, 50)), 99.0, 99.5, 100.0)
"""Percent of the requests, ordered by their time, that a curve has a point for."""
QUANTILES = {"median": 50.0, "p90": 90.0, "p99": 99.0, "longest": 100.0}

REPEATS = (1, 3, 7, 15, 31)
"""Seconds after which Linux sends a SYN again: the first after one, each next after twice that."""
EARLY, LATE = 0.98, 0.35
"""How much of that has passed at least, and seconds after it within which who waited is served."""


def curve(encoded: str) -> dict[float, float]:
    """Milliseconds within which so many percent of the requests of a histogram were done."""
    found = histogram.merge([encoded]).get_percentile_to_value_dict(list(SHARES))
    return {share: value / 1e3 for share, value in found.items()}


_curve = functools.lru_cache(maxsize=4096)(curve)


def course(samples: Sequence[Record], part: str) -> list[tuple[float, Spread]]:
    """Milliseconds of one of the times by share of the requests, over the rounds."""
    curves = [_curve(one[part]) for one in samples if one["answered"]]
    found = [(share, spread(one[share] for one in curves)) for share in SHARES]
    return [(share, one) for share, one in found if one]


def quantile(part: str, name: str) -> tables.Value:
    """Milliseconds within which so many requests were done, over the rounds."""
    share = QUANTILES[name]
    return lambda samples: spread(_curve(one[part])[share] for one in samples if one["answered"])


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
    return dict(Counter(str(count) for time in connect_us if (count := repeats(time / 1e6))))
