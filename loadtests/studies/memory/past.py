"""Figures of the study of 2010: KiB, as `ps` gives them."""

from __future__ import annotations

from loadtests.reporting.model import Column, Table

SIZES = {
    "lighttpd": (952, 6_196, 952),
    "Poor HTTP Single": (4_160, 10_440, 4_160),
    "lighttpd + 4 × Single": (5_112, 16_636, 17_592),
    "Poor HTTP Forking": (4_196, 10_476, 41_960),
    "Poor HTTP Threading": (38_008, 44_288, 38_008),
    "Apache": (228_832, 237_156, 917_344),
}
"""Size, virtual size and 4 × size."""
NOTE = (
    "Intel Atom N270, 2 GB, Debian Squeeze, 32 bits; Python 2. With lighttpd a proxy and "
    "one server are added up. 4 × size is reckoned as four times the size and that of the parent "
    "process, so what is shared counts four times; but for Forking it is ten times the size."
)


def table() -> Table:
    """Their table."""
    unit = "KiB"
    return Table(
        "memory-2010",
        "What the study of 2010 had",
        [Column("configuration"), *(Column(n, unit) for n in ("size", "vsize", "4 × size"))],
        [[name, *(float(value) for value in sizes)] for name, sizes in SIZES.items()],
        note=NOTE,
    )
