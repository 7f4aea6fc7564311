"""HDR histograms of times: three digits from a microsecond to an hour, in a few hundred bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

from hdrh.histogram import HdrHistogram

LONGEST = 3_600_000_000
"""Microseconds."""
DIGITS = 3


def record(microseconds: Iterable[float], counts: Iterable[int] | None = None) -> HdrHistogram:
    """A histogram of times that came once or so often; below a microsecond counts as one."""
    histogram = HdrHistogram(1, LONGEST, DIGITS)
    for value, count in zip(microseconds, counts or repeat(1), strict=False):
        histogram.record_value(min(max(round(value), 1), LONGEST), count)
    return histogram


def encode(histogram: HdrHistogram) -> str:
    """As it is stored: the format of HdrHistogram's logs, base64."""
    encoded: bytes = histogram.encode()
    return encoded.decode("ascii")


def merge(encoded: Iterable[str]) -> HdrHistogram:
    """One histogram of all these."""
    whole = HdrHistogram(1, LONGEST, DIGITS)
    for one in encoded:
        whole.decode_and_add(one.encode("ascii"))
    return whole


def quantile(histogram: HdrHistogram, share: float, greatest: float = LONGEST) -> float:
    """Microseconds within which so great a share (0 to 1) of the times lies.

    `greatest`: that of the times, where it is known; the bucket in which it is may end behind it.
    """
    return quantiles(histogram, [share], greatest)[0]


def quantiles(
    histogram: HdrHistogram, shares: Sequence[float], greatest: float = LONGEST
) -> list[float]:
    """The quantiles of these shares."""
    percents = [share * 100 for share in shares]
    values = histogram.get_percentile_to_value_dict(percents)
    return [min(float(values.get(percent, 0)), greatest) for percent in percents]
