"""Figures of the study of 2010, "Poor HTTP": a netbook over a wireless network.

Compaq with an Intel Atom N270 of 1.6 GHz and 2 GB, Debian Squeeze, asked by another machine over
an ad-hoc WLAN (WEP 40), which the study itself calls the bottleneck. Each test took about a minute.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadtests.reporting.model import Cell, Column, Table

YEAR = 2010
SOURCE = "Poor HTTP, 2010"
SECONDS = 60
AT_ONCE, EVERY = 100, 1.0
"""New requests of the parallel test, and the seconds from one burst of them to the next."""
MOST_UNANSWERED = 600

SERIAL = (
    ("Single", 183.02, 110.85, 80.49, 0.0054, 0.0090),
    ("Forking", 59.88, 49.16, 40.26, 0.0166, 0.0203),
    ("Threading", 154.93, 103.35, 76.14, 0.0064, 0.0096),
    ("Apache prefork", 184.60, 137.57, 81.01, 0.0054, 0.0072),
    ("Lighttpd + Single", 79.41, 77.52, 57.91, 0.0125, 0.0128),
    ("Lighttpd + 2 × Single", 77.03, 74.30, 56.21, 0.0129, 0.0134),
)
PARALLEL = (
    ("Single", 9.14, 8.80, 82.95, 0.1093, 0.1135, "reached"),
    ("Forking", 5.12, 4.84, 60.76, 0.1950, 0.2065, "not reached"),
    ("Threading", 6.21, 5.89, 58.80, 0.1608, 0.1696, "reached"),
    ("Apache prefork", 4.96, 4.85, 70.79, 0.2014, 0.2060, "not reached"),
    ("Lighttpd + Single", 0.64, 0.64, 79.50, 1.5510, 1.5514, "reached"),
    ("Lighttpd + 2 × Single", 2.88, 2.87, 92.04, 0.3471, 0.3475, "not reached"),
)
"""Rows of `table`; of the parallel test, whether the most unanswered requests were reached."""

SIZES = {
    "lighttpd": (952, 6_196, 952),
    "Poor HTTP Single": (4_160, 10_440, 4_160),
    "lighttpd + 4 × Single": (5_112, 16_636, 17_592),
    "Poor HTTP Forking": (4_196, 10_476, 41_960),
    "Poor HTTP Threading": (38_008, 44_288, 38_008),
    "Apache": (228_832, 237_156, 917_344),
}
"""Memory in KiB, as `ps` gives it: size, virtual size and 4 × size."""


def table(
    study: str, answered: str, rows: Sequence[Sequence[Cell]], note: str, *more: Column
) -> Table:
    """What the serial or the parallel test had."""
    columns = (
        Column("configuration"),
        Column("first bytes that fit into a second", places=2),
        Column("whole pages that fit into a second", places=2),
        Column(answered, "/s", 2),
        Column("time to the first bytes", "s", 4),
        Column("time to the whole page", "s", 4),
        *more,
    )
    return Table(f"{study}-{YEAR}", f"What the study of {YEAR} had", columns, rows, note=note)
