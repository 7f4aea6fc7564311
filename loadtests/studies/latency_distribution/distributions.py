"""Distributions of times: rounds combined, curves and quantiles with their spread."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.servers.registry.latency_distribution import everyone
from loadtests.stats.results import Results, Spread, spread
from loadtests.store import Record
from loadtests.studies.latency_distribution.contents import Content
from loadtests.studies.latency_distribution.times import QUANTILES, SHARES, curve

_curve = functools.lru_cache(maxsize=4096)(curve)


@dataclass(frozen=True)
class Distributions:
    """Samples, each with what was asked, of whom, and the histograms of its three times."""

    records: Sequence[Record]

    def of(self, content: Content) -> Distributions:
        """Those of a content."""
        return Distributions(
            [one for one in self.records if one["scenario"] == f"{content.name}-{one['at_once']}"]
        )

    def at(self, level: int) -> Distributions:
        """Those with so many clients at once."""
        return Distributions([one for one in self.records if one["at_once"] == level])

    def levels(self) -> list[int]:
        """Numbers of clients at once."""
        return sorted({one["at_once"] for one in self.records})

    def servers(self) -> list[str]:
        """Their names, in the order of tables."""
        seen = {one["server"] for one in self.records}
        known = [server.name for server in everyone() if server.name in seen]
        return known + sorted(seen.difference(known))

    def rounds(self) -> int:
        """How often it was measured, at most."""
        return max((len(self._rounds(server)) for server in self.servers()), default=0)

    def _rounds(self, server: str) -> list[Record]:
        return [one for one in self.records if one["server"] == server]

    def curve(self, server: str, part: str) -> list[tuple[float, Spread]]:
        """Milliseconds of one of the times by share of the requests."""
        curves = [_curve(one[part]) for one in self._rounds(server) if one["answered"]]
        return [
            (share, found)
            for share in SHARES
            if (found := spread(one[share] for one in curves)) is not None
        ]

    def quantile(self, server: str, part: str, name: str) -> Spread | None:
        """Milliseconds within which so many requests were done."""
        share = QUANTILES[name]
        return spread(_curve(one[part])[share] for one in self._rounds(server) if one["answered"])

    def field(self, server: str, name: str) -> Spread | None:
        """A field over the rounds that have it."""
        return spread(one[name] for one in self._rounds(server) if name in one)

    def sum(self, server: str, name: str) -> int:
        """A count of all rounds together."""
        return sum(one[name] for one in self._rounds(server))

    def repeated(self, server: str) -> dict[int, int]:
        """How many requests of all rounds waited for how many repeated SYNs."""
        found: dict[int, int] = {}
        for one in self._rounds(server):
            for count, requests in one["repeated_syn"].items():
                found[int(count)] = found.get(int(count), 0) + requests
        return dict(sorted(found.items()))

    def waited(self, server: str) -> int:
        """How many requests of all rounds waited for a repeated SYN."""
        return sum(self.repeated(server).values())


def distributions(results: Results) -> Distributions:
    """All samples; of a step that was taken again, because it was interrupted, the last."""
    last: dict[tuple[str, str, str, int], Record] = {}
    for one in results.samples:
        if "total" in one:
            last[one["run"], one["scenario"], one["server"], one["round"]] = one
    return Distributions(list(last.values()))
