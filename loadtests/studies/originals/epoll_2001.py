"""Findings of the study of 2001 of ways to wait for events: /dev/epoll, signals, poll()."""

from __future__ import annotations

from loadtests.reporting.model import Column, Table

FINDINGS = (
    (
        "128 bytes",
        "/dev/epoll 10 to 12 % faster than RT signals one-sig; all three keep it up as dead "
        "connections become more; RT signals a little slower than one-sig",
    ),
    ("512 and 1,024 bytes", "all about alike: the network of 100 Mbit/s was saturated"),
    (
        "load by dead connections",
        "/dev/epoll 15 % faster than RT one-sig, that 10 to 15 % faster than RT signals",
    ),
    (
        "response time",
        "with /dev/epoll independent of the connections; poll() and /dev/poll suffer from dead "
        "ones",
    ),
    (
        "client",
        "httperf --think-timeout 5 --timeout 5 --num-calls 2500 --num-conns 100 --hog --rate 100, "
        "with 8,000 descriptors",
    ),
    ("machines", "server Pentium III 600 MHz, Linux 2.4.6; clients and dead ones on two more"),
)


def table(name: str) -> Table:
    """The findings."""
    note = "The study compares ways to wait in the same server; its numbers are in figures only."
    return Table(name, "", [Column("of"), Column("found")], FINDINGS, note=note)
