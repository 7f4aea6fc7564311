"""Quantities of a verdict: their fields in samples, units, and the words for less and more."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadtests.clients.load import SATURATED
from loadtests.reporting.model import MIB
from loadtests.stats.verdict import LESS, MORE, UNDECIDED, ZONE, Ratio
from loadtests.store import Record

SAMPLES = 4
"""Of a round: two of each server."""


@dataclass(frozen=True)
class Quantity:
    """`field` is that of a sample, `scale` makes its unit; a busy `client` may limit it.

    `less` and `more` say what the second server is if it has less or more of it. `uses` is what
    people are told that it uses less or more of, so that nobody takes it for speed.
    """

    name: str
    title: str
    field: str
    unit: str
    scale: float = 1.0
    less: str = "faster"
    more: str = "slower"
    client: bool = True
    uses: str = ""

    @property
    def less_is_better(self) -> bool:
        """Whether the server that has less of it is ahead."""
        return self.less != "slower"

    def than(self, words: str, share: str = "") -> str:
        """What the second server does: `is 5 % faster than`, `uses 5 % less CPU than`."""
        return " ".join(filter(None, ("uses" if self.uses else "is", share, words, "than")))


QUANTITIES = {
    one.name: one
    for one in (
        Quantity("cpu", "CPU time per request", "cpu_us", "µs", client=False, uses="CPU"),
        Quantity("p50", "p50", "p50_us", "ms", 1e-3),
        Quantity("p99", "p99", "p99_us", "ms", 1e-3),
        Quantity("rate", "requests", "rate", "/s", less="slower", more="faster"),
        Quantity(
            "memory",
            "memory (PSS)",
            "pss",
            "MiB",
            MIB,
            "smaller",
            "larger",
            client=False,
            uses="memory",
        ),
    )
}


@dataclass(frozen=True)
class Verdict:
    """What is known of a quantity: B to A as a ratio, and the medians of both in its unit.

    `reason` says why a winner is not named although the ratio may look like it; `disturbed` are
    then the ratios of the rounds that others disturbed.
    """

    quantity: Quantity
    ratio: Ratio
    before: float
    after: float
    reason: str = ""
    zone: float = ZONE
    disturbed: Sequence[float] = ()

    @property
    def side(self) -> str:
        """LESS, MORE or UNDECIDED."""
        return UNDECIDED if self.reason else self.ratio.verdict(self.zone)

    @property
    def word(self) -> str:
        """What the second server is, or that it is not to be told."""
        return {LESS: self.quantity.less, MORE: self.quantity.more}.get(self.side, self.side)

    @property
    def told(self) -> str:
        """The word for people: `less CPU` rather than `faster`."""
        uses = self.quantity.uses
        return f"{self.side} {uses}" if uses and self.side != UNDECIDED else self.word


def differences(
    samples: Iterable[Mapping[str, Any]], names: Sequence[str], field: str
) -> list[float]:
    """The mean logarithm of the second server minus that of the first, of each whole round."""
    rounds: dict[int, dict[str, list[float]]] = {}
    for one in samples:
        if one["server"] in names and one.get(field, 0) > 0:
            own = rounds.setdefault(one["round"], {name: [] for name in names})
            own[one["server"]].append(math.log(one[field]))
    return [
        sum(second) / len(second) - sum(first) / len(first)
        for first, second in ([own[name] for name in names] for own in rounds.values())
        if len(first) == len(second) and first
    ]


def whole(samples: Sequence[Record]) -> list[Record]:
    """The samples of rounds of which none is missing, as it is where a server failed."""
    taken = Counter(one["round"] for one in samples)
    return [one for one in samples if taken[one["round"]] == SAMPLES]


def client_limited(samples: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the client had no time left in most of the samples."""
    busy = [bool(one["client_busy"] >= SATURATED) for one in samples if "client_busy" in one]
    return 2 * sum(busy) > len(busy)
