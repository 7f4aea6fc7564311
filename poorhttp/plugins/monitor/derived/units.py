"""Numbers with units, short enough for a table."""

from __future__ import annotations

import time


def count(number: float) -> str:
    """Return a whole number."""
    return f"{number:,.0f}"


def rate(per_second: float) -> str:
    """Return a number per second with about three digits."""
    if per_second == 0 or per_second >= 100:
        return count(per_second)
    return f"{per_second:.1f}" if per_second >= 9.95 else f"{per_second:.2f}"


def seconds(duration: float | None) -> str:
    """Return a duration with two or three digits; a dash if it is not known."""
    if duration is None:
        return "–"
    if duration < 0.000_999_5:
        return f"{duration * 1e6:.0f} µs"
    if duration < 0.009_95:
        return f"{duration * 1e3:.2g} ms"
    if duration < 0.999_5:
        return f"{duration * 1e3:.0f} ms"
    if duration < 9.95:
        return f"{duration:.2f} s"
    if duration < 119.5:
        return f"{duration:.0f} s"
    return age(duration)


def roughly(duration: float) -> str:
    """Return a long duration in its largest unit."""
    return " ".join(age(duration).split()[:2])


def age(duration: float) -> str:
    """Return a long duration in its two largest units."""
    whole = max(0, int(duration + 0.5))
    for size, name, less, smaller in (
        (86_400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // less
            return f"{whole // size} {name} {rest} {smaller}" if rest else f"{whole // size} {name}"
    return f"{whole} s"


def octets(number: float) -> str:
    """Return a number of bytes."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 999.5:
            digits = 0 if unit == "B" or number >= 99.5 else 1
            return f"{number:.{digits}f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"


def percent(part: float) -> str:
    """Return a part of 1 in percent."""
    return f"{part * 100:.0f} %" if part >= 0.0995 or part == 0 else f"{part * 100:.1f} %"


def moment(when: float) -> str:
    """Return a time as ISO 8601 in UTC, or a dash for one that no calendar has."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))
    except (OverflowError, ValueError, OSError):
        return "–"
