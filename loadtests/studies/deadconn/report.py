"""Report of the study `deadconn`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.clients.load import SATURATED
from loadtests.reporting.model import Axis, Cell, Column, Line, Lines, Panels, Section, Table
from loadtests.servers.lists import colour_of
from loadtests.stats.results import Results, Spread, spread

NAME = "deadconn"
SELECT = "waitress 8 threads"
"""The one that waits by select()."""
FD_SETSIZE = 1_024
KNOWN_LIMITS = {
    "lighttpd": "It takes no more connections than half of the descriptors that it may have",
    "waitress 8 threads, poll": "It accepts a connection each time it has looked at all",
}
SLOWER = 0.9
"""The share of its rate without dead connections below which a server suffers from them."""

OLD = (
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


@dataclass(frozen=True)
class Measure:
    """A field of the samples: table and figure of it."""

    field: str
    title: str
    axis: str
    unit: str
    places: int
    scale: float = 1.0


MEASURES = (
    Measure("rate", "Reply rate", "replies per second", "1/s", 0),
    Measure("mean_us", "Response time", "mean response time", "ms", 2, 1e-3),
    Measure("cpu_us", "CPU", "server's CPU time per reply", "µs", 1),
)


def report(results: Results) -> list[Section]:
    """All of it; of what failed, that it failed."""
    samples = results.samples
    if not samples:
        return []
    servers = list(dict.fromkeys(str(sample["server"]) for sample in samples))
    sizes = sorted({int(sample["size"]) for sample in samples})
    counts = sorted({int(sample["dead"]) for sample in samples})
    parts: list[Table | Panels] = [_left(results, servers, sizes)]
    if ends := _ends(results):
        parts.append(ends)
    for measure in MEASURES:
        parts.append(_figure(results, measure, servers, sizes, counts))
        parts += [_table(results, measure, servers, size, counts) for size in sizes]
    text = [
        "What do those who ask get beside connections on which nothing happens? Persistent "
        f"connections ask for answers of {_listed(sizes)} bytes while {counts[0]:,} to "
        f"{counts[-1]:,} others are dead: half of them silent, half in the middle of a head.",
        *_remarks(results, servers, sizes),
    ]
    old = Table(
        f"{NAME}-2001",
        "",
        [Column("of"), Column("found")],
        OLD,
        note="It compares ways to wait in the same server; its numbers are in figures only.",
    )
    return [
        Section("Dead connections", text, parts),
        Section("Dead connections in 2001", [], [old]),
    ]


def _listed(sizes: Sequence[int]) -> str:
    words = [f"{size:,}" for size in sizes]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _found(results: Results, field: str, server: str, size: int, count: int) -> Spread | None:
    return spread(
        float(sample[field])
        for sample in results.samples
        if (sample["server"], sample["size"], sample["dead"]) == (server, size, count)
    )


def _reached(results: Results, server: str, size: int) -> list[int]:
    """The levels at which a server was measured."""
    return sorted(
        {
            int(sample["dead"])
            for sample in results.samples
            if (sample["server"], sample["size"]) == (server, size)
        }
    )


def _kept(results: Results, server: str, size: int) -> float | None:
    """The share of its rate that a server keeps beside the most dead connections that it had."""
    reached = _reached(results, server, size)
    if len(reached) < 2 or reached[0] != 0:
        return None
    alone = _found(results, "rate", server, size, 0)
    beside = _found(results, "rate", server, size, reached[-1])
    return beside.median / alone.median if alone and beside and alone.median else None


def _is_sure(results: Results, server: str, size: int) -> bool:
    """Whether the worst round without dead connections is better than the best beside them."""
    reached = _reached(results, server, size)
    alone = _found(results, "rate", server, size, reached[0])
    beside = _found(results, "rate", server, size, reached[-1])
    return bool(alone and beside and beside.high < alone.low)


def _ours(servers: Sequence[str]) -> frozenset[str]:
    return frozenset(server for server in servers if server.startswith("poorhttp"))


def _left(results: Results, servers: Sequence[str], sizes: Sequence[int]) -> Table:
    rows: list[list[Cell]] = []
    for server in servers:
        most = max(count for size in sizes for count in _reached(results, server, size))
        rows.append([server, float(most), *(_kept(results, server, size) for size in sizes)])
    return Table(
        f"{NAME}-kept",
        "What is left of the reply rate beside the most dead connections",
        [
            Column("server"),
            Column("dead connections"),
            *(Column(f"{size:,} bytes", "%", 0, 100) for size in sizes),
        ],
        rows,
        _ours(servers),
        "Against the same server without dead connections.",
    )


def _ends(results: Results) -> Table | None:
    """Who did not get to the end, and why."""
    ended = [failure for failure in results.failures if "dead" in failure]
    if not ended:
        return None
    rows: list[list[Cell]] = []
    for failure in ended:
        server = str(failure["server"])
        reason = str(failure["reason"])
        if _by_select(server, int(failure["dead"])):
            reason = f"select() has no descriptors from {FD_SETSIZE:,} on: {reason}"
        elif server in KNOWN_LIMITS:
            reason = f"{KNOWN_LIMITS[server]}: {reason}"
        rows.append([server, float(failure["round"] + 1), float(failure["dead"]), reason])
    return Table(
        f"{NAME}-ends",
        "Who did not get to the end",
        [Column("server"), Column("round"), Column("dead connections"), Column("what happened")],
        rows,
        _ours([str(row[0]) for row in rows]),
    )


def _by_select(server: str, count: int) -> bool:
    return server == SELECT and count + 10 >= FD_SETSIZE - 100


def _remarks(results: Results, servers: Sequence[str], sizes: Sequence[int]) -> list[str]:
    said = []
    kept = {
        server: statistics.median(shares)
        for server in servers
        if (shares := [one for size in sizes if (one := _kept(results, server, size)) is not None])
    }
    suffering = [
        server
        for server, share in kept.items()
        if share < SLOWER
        and all(
            _is_sure(results, server, size) for size in sizes if _reached(results, server, size)
        )
    ]
    if suffering:
        words = ", ".join(f"{server} keeps {kept[server]:.0%}" for server in suffering)
        said.append(
            f"Of their reply rate without dead connections, in the median of the sizes: {words}."
        )
    if spared := [server for server in kept if server not in suffering]:
        said.append(
            f"At least {SLOWER:.0%} of it, or what lies within the spread of the rounds, keep: "
            f"{', '.join(spared)}."
        )
    ended = [failure for failure in results.failures if "dead" in failure]
    if limited := [one for one in ended if _by_select(str(one["server"]), int(one["dead"]))]:
        lowest = min(int(one["dead"]) for one in limited)
        said.append(
            f"{SELECT} waits by select(), which has room for {FD_SETSIZE:,} descriptors "
            f"(FD_SETSIZE) and none for {lowest:,} dead connections: it ends there by its nature."
        )
    saturated = {
        str(sample["server"])
        for sample in results.samples
        if float(sample["client_busy"]) >= SATURATED
    }
    if saturated:
        names = ", ".join(server for server in servers if server in saturated)
        said.append(f"The client was the limit in samples of: {names}.")
    errors = {
        server: sum(
            sum(sample["errors"].values())
            for sample in results.samples
            if sample["server"] == server
        )
        for server in servers
    }
    if any(errors.values()):
        words = ", ".join(f"{server} {count:,}" for server, count in errors.items() if count)
        said.append(f"Requests that failed: {words}.")
    said += [
        f"Failed: {one['what']}: {one['reason']}." for one in results.failures if "dead" not in one
    ]
    said += [f"Left out: {one['server']}: {one['reason']}." for one in results.missing]
    return said


def _table(
    results: Results, measure: Measure, servers: Sequence[str], size: int, counts: Sequence[int]
) -> Table:
    return Table(
        f"{NAME}-{measure.field}-{size}",
        f"{measure.title} by dead connections, {size:,} bytes",
        [
            Column("server"),
            *(
                Column(f"{count:,}", measure.unit, measure.places, measure.scale)
                for count in counts
            ),
        ],
        [
            [
                server,
                *(_found(results, measure.field, server, size, count) for count in counts),
            ]
            for server in servers
        ],
        _ours(servers),
    )


def _figure(
    results: Results,
    measure: Measure,
    servers: Sequence[str],
    sizes: Sequence[int],
    counts: Sequence[int],
) -> Panels:
    panels = []
    for size in sizes:
        lines = []
        for server in servers:
            found = [
                (float(count), one)
                for count in counts
                if (one := _found(results, measure.field, server, size, count)) is not None
            ]
            scale = measure.scale
            lines.append(
                Line(
                    server,
                    colour_of(server),
                    [(count, one.median * scale) for count, one in found],
                    [(count, one.low * scale, one.high * scale) for count, one in found],
                    server.startswith("poorhttp"),
                )
            )
        panels.append(
            Lines(
                f"{NAME}-{measure.field}-{size}",
                f"{size:,} bytes",
                Axis("dead connections", low=0),
                Axis(measure.axis, measure.unit, log=True),
                lines,
                marks=True,
            )
        )
    return Panels(
        f"{NAME}-{measure.field}-figure",
        f"{measure.title} by dead connections",
        panels,
        "A level line does not care about dead connections; one that ends early is a server that "
        "could not hold more.",
    )
