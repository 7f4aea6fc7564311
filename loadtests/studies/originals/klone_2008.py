"""Figures of the study "KLone against Boa, Lighttpd and Apache": milliseconds from its text.

Its diagrams show no numbers that could be read. Client: Apache Bench 2.0.4-dev on a MacBook Pro,
over a network; server: Xeon 3060, Debian Etch; KLone 2.0.3, Boa 0.94, lighttpd 1.4.19, Apache
2.2.8, so of 2008.
"""

from __future__ import annotations

YEAR = 2008
SERVERS = ("KLone", "Lighttpd", "Boa", "Apache 2")
STATEMENTS = (
    ("page", "connect", "5–15", "30 more", "25 more", "peaks of 1,000"),
    ("page", "processing", "never above 30", "280", "1,000", "1,000"),
    ("file", "connect", "2", "2", "2", "2"),
    ("file", "processing", "linear, less steep", "45,000", "48,000", "10,000"),
    ("cgi-shell", "connect", "1–2", "30 more", "30 more", "peaks of 1,000"),
    ("cgi-shell", "processing", "", "200 more than KLone", "less than KLone up to 800", "steep"),
    ("template", "connect", "less than half of Lighttpd", "50", "50", "50"),
    ("template", "processing", "25", "linear", "", ""),
)
"""Content, one of the times, and what it says of each server; empty: nothing."""
