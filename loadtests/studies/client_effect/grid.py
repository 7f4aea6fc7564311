"""Observations of every client with every server, for an analysis of variance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from loadtests.stats.results import Results, Spread, spread


@dataclass(frozen=True)
class Grid:
    """`values` by client and server, in the order in which they were observed."""

    clients: Sequence[str]
    servers: Sequence[str]
    values: dict[tuple[str, str], list[float]]

    def spread(self, client: str, server: str) -> Spread | None:
        """Over all observations of a combination."""
        return spread(self.values.get((client, server), []))

    def holes(self, replications: int) -> list[tuple[str, str]]:
        """The combinations with fewer observations."""
        return [
            (client, server)
            for client in self.clients
            for server in self.servers
            if len(self.values.get((client, server), [])) < replications
        ]

    def only(self, clients: Sequence[str], servers: Sequence[str]) -> Grid:
        """A part of it."""
        return Grid(clients, servers, self.values)

    def cells(self, replications: int) -> list[list[list[float]]]:
        """The first so many observations: a row for each client, the servers in their order."""
        return [
            [self.values[client, server][:replications] for server in self.servers]
            for client in self.clients
        ]


@dataclass(frozen=True)
class Part:
    """The largest part of a grid without holes; `grid` is empty if nothing can be analysed."""

    grid: Grid
    replications: int
    left_out: tuple[str, ...]


def grid(results: Results, field: str) -> Grid:
    """A field of all samples; servers in order of their best, so from slow to fast."""
    values: dict[tuple[str, str], list[float]] = {}
    for sample in results.samples:
        key = (str(sample["client"]), str(sample["server"]))
        values.setdefault(key, []).append(float(sample[field]))
    clients = list(dict.fromkeys(client for client, _ in values))
    servers = list(dict.fromkeys(server for _, server in values))
    whole = Grid(clients, servers, values)

    def best(server: str) -> float:
        found = [whole.spread(client, server) for client in clients]
        return max(one.median for one in found if one is not None)

    return Grid(clients, sorted(servers, key=best), values)


def largest(whole: Grid) -> Part:
    """The part with the most observations that has at least two clients and two servers.

    Replicated, wherever that is possible at all: without, nothing tells interaction from error.
    """
    most = max((len(found) for found in whole.values.values()), default=0)
    candidates = list(_candidates(whole, range(2, most + 1))) or list(_candidates(whole, [1]))
    if not candidates:
        return Part(Grid([], [], {}), 0, ())
    part, replications = max(
        candidates, key=lambda one: (len(one[0].clients) * len(one[0].servers) * one[1], one[1])
    )
    left_out = [client for client in whole.clients if client not in part.clients]
    left_out += [server for server in whole.servers if server not in part.servers]
    return Part(part, replications, tuple(left_out))


def _candidates(whole: Grid, allowed: Iterable[int]) -> Iterable[tuple[Grid, int]]:
    for replications in allowed:
        holes = set(whole.holes(replications))
        for count in range(2, len(whole.clients) + 1):
            for clients in combinations(whole.clients, count):
                servers = [
                    server
                    for server in whole.servers
                    if not any((client, server) in holes for client in clients)
                ]
                if len(servers) >= 2:
                    yield whole.only(clients, servers), replications
