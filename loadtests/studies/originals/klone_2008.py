"""Figures of the study "KLone against Boa, Lighttpd and Apache": milliseconds from its text.

Its diagrams show no numbers that could be read. Client: Apache Bench 2.0.4-dev on a MacBook Pro,
over a network; server: Xeon 3060, Debian Etch; KLone 2.0.3, Boa 0.94, lighttpd 1.4.19, Apache
2.2.8, so of 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

YEAR = 2008
SERVERS = ("KLone", "Lighttpd", "Boa", "Apache 2")


@dataclass(frozen=True)
class Statement:
    """What it says of a content and one of the times, by server; empty: nothing."""

    content: str
    part: str
    klone: str
    lighttpd: str
    boa: str
    apache: str


STATEMENTS: Sequence[Statement] = (
    Statement("page", "connect", "5–15", "30 more", "25 more", "peaks of 1,000"),
    Statement("page", "processing", "never above 30", "280", "1,000", "1,000"),
    Statement("file", "connect", "2", "2", "2", "2"),
    Statement("file", "processing", "linear, less steep", "45,000", "48,000", "10,000"),
    Statement("cgi-shell", "connect", "1–2", "30 more", "30 more", "peaks of 1,000"),
    Statement(
        "cgi-shell", "processing", "", "200 more than KLone", "less than KLone up to 800", "steep"
    ),
    Statement("template", "connect", "less than half of Lighttpd", "50", "50", "50"),
    Statement("template", "processing", "25", "linear", "", ""),
)
