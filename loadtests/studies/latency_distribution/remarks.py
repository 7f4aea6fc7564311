"""Remarks on the results of one content, made from its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from loadtests.clients.load import SATURATED
from loadtests.servers.registry.latency_distribution import NOT_CGI
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import tables
from loadtests.studies.latency_distribution.contents import Content
from loadtests.studies.latency_distribution.times import REPEATS, quantile

MANY = 100
"""Clients at once from which on the client takes notable time to begin all connections."""


def remarks(results: Results, content: Content, levels: Mapping[int, list[Record]]) -> list[str]:
    """A paragraph each; `levels` has the samples by number of clients at once."""
    said: list[str] = []
    busy: list[str] = []
    for level, samples in levels.items():
        for server, own in tables.by_server(samples).items():
            said += _repeated(f"{server}, {level:,} at once", own)
            said += _failed(f"{server}, {level:,} at once", own)
        shares = tables.spreads(samples, "client_busy")
        full = [server for server, share in shares.items() if share.median >= SATURATED]
        busy += [f"{server} ({level:,} at once)" for server in full]
    if busy:
        said.append(
            "The client was busy all the time, so the times are its own as much as the server's, "
            f"with {', '.join(busy)}."
        )
    for level, samples in levels.items():
        connect = tables.spreads(samples, quantile("connect", "median")).get(tables.BASELINE)
        if level >= MANY and connect:
            said.append(
                f"The client begins {level:,} connections one after the other: a connection to the "
                "baseline (floor), which does nothing but accept and answer, took "
                f"{connect.median:.1f} ms (the median). So much of each connect time is the "
                "client's and the kernel's."
            )
    if content.name.startswith("cgi") and levels:
        said.append(
            f"{' and '.join(NOT_CGI)} run programs, too, but take no part: they hand on the head "
            "of a program's answer with the line ends that it has, which is no HTTP."
        )
    return said + failures(results, content.name)


def failures(results: Results, kind: str) -> list[str]:
    """A sentence for each reason for which something of a content could not be measured."""
    found: dict[str, list[str]] = {}
    for one in results.failures:
        if str(one.get("what", "")).startswith(f"ordered {kind} at "):
            found.setdefault(one["reason"], []).append(one["what"].removeprefix("ordered "))
    return [f"Failed: {'; '.join(steps)}: {reason}." for reason, steps in found.items()]


def _counted(samples: Sequence[Record], field: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for one in samples:
        found.update(one[field])
    return found


def waited(samples: Sequence[Record]) -> float:
    """How many requests of all rounds waited for a repeated SYN."""
    return float(_counted(samples, "repeated_syn").total())


def _repeated(where: str, samples: Sequence[Record]) -> list[str]:
    """Long connects that are those of a full backlog."""
    said = []
    found = _counted(samples, "repeated_syn")
    for count in sorted(map(int, found)):
        syns = "a repeated SYN" if count == 1 else f"{count} repeated SYNs"
        requests = found[str(count)]
        said.append(
            f"{where}: {requests:,} {'request' if requests == 1 else 'requests'} waited for "
            f"{syns}, about {REPEATS[count - 1]} s: its backlog was full."
        )
    return said


def _failed(where: str, samples: Sequence[Record]) -> list[str]:
    failed = sum(one["failed"] for one in samples)
    if not failed:
        return []
    kinds = _counted(samples, "errors").items()
    known = ", ".join(f"{kind}: {count:,}" for kind, count in kinds)
    asked = sum(one["requests"] for one in samples)
    return [
        f"{where}: {failed:,} of {asked:,} requests failed{f' ({known})' if known else ''}; the "
        "times are those of the others."
    ]
