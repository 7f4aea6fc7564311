"""Remarks on the results of one content, made from its figures."""

from __future__ import annotations

from collections import Counter

from loadtests.clients.load import SATURATED
from loadtests.servers.registry.latency_distribution import NOT_CGI
from loadtests.stats.results import Results
from loadtests.studies.latency_distribution.contents import Content
from loadtests.studies.latency_distribution.distributions import Distributions
from loadtests.studies.latency_distribution.times import REPEATS

MANY = 100
"""Clients at once from which on the client takes notable time to begin all connections."""


def remarks(results: Results, content: Content, samples: Distributions) -> list[str]:
    """A paragraph each."""
    said: list[str] = []
    for level in samples.levels():
        at_once = samples.at(level)
        said += [*_repeated(level, at_once), *_failed(level, at_once)]
    said += _saturated(samples)
    said += _own_connects(samples)
    if content.name.startswith("cgi") and samples.records:
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


def _repeated(level: int, samples: Distributions) -> list[str]:
    """Long connects that are those of a full backlog."""
    said = []
    for server in samples.servers():
        for count, requests in samples.repeated(server).items():
            syns = "a repeated SYN" if count == 1 else f"{count} repeated SYNs"
            said.append(
                f"{server}, {level:,} at once: {requests:,} "
                f"{'request' if requests == 1 else 'requests'} waited for {syns}, about "
                f"{REPEATS[count - 1]} s: its backlog was full."
            )
    return said


def _failed(level: int, samples: Distributions) -> list[str]:
    said = []
    for server in samples.servers():
        if failed := samples.sum(server, "failed"):
            kinds: Counter[str] = Counter()
            for one in samples.records:
                if one["server"] == server:
                    kinds.update(one["errors"])
            asked = samples.sum(server, "requests")
            known = ", ".join(f"{kind}: {count:,}" for kind, count in kinds.items())
            said.append(
                f"{server}, {level:,} at once: {failed:,} of {asked:,} requests failed"
                f"{f' ({known})' if known else ''}; the times are those of the others."
            )
    return said


def _saturated(samples: Distributions) -> list[str]:
    busy = [
        f"{server} ({level:,} at once)"
        for level in samples.levels()
        for server in samples.at(level).servers()
        if (share := samples.at(level).field(server, "client_busy")) and share.median >= SATURATED
    ]
    if not busy:
        return []
    return [
        "The client was busy all the time, so the times are its own as much as the server's, with "
        + ", ".join(busy)
        + "."
    ]


def _own_connects(samples: Distributions) -> list[str]:
    """What connecting takes where nothing has to be waited for."""
    said = []
    for level in samples.levels():
        found = samples.at(level).quantile("floor", "connect", "p50")
        if level >= MANY and found is not None:
            said.append(
                f"The client begins {level:,} connections one after the other: a connection to the "
                f"floor, which does nothing but accept and answer, took {found.median:.1f} ms "
                "(the median). So much of each connect time is the client's and the kernel's."
            )
    return said
