"""Checks the responses of polling clients against the saved versions."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from loadtests.studies.reload.author import Save
from loadtests.studies.reload.browsers import Asked

HALF_LOADED = "half-loaded"
BACKWARDS = "backwards"
SHOWN = 20


@dataclass(frozen=True)
class Judgement:
    """`kinds` of faults of so many requests, some of them `shown`, and the longest in seconds.

    Beside what can become of any request: its answer may be HALF_LOADED, made by modules that were
    never in the project together; or BACKWARDS, of an older version than somebody had before it was
    asked.
    """

    requests: int
    kinds: Counter[str]
    shown: list[dict[str, object]]
    longest: float

    @property
    def failed(self) -> int:
        """Requests that something was wrong with."""
        return self.kinds.total()


def judge(saves: Sequence[Save], asked: Sequence[Asked]) -> Judgement:
    """Every request, by what was saved."""
    numbers = {save.versions: number for number, save in enumerate(saves)}
    answered = sorted(
        (one.ended, numbers[one.versions]) for one in asked if one.versions in numbers
    )
    ends = [ended for ended, _ in answered]
    newest = list(accumulate((number for _, number in answered), max))

    def fault(one: Asked) -> str:
        if one.fault:
            return one.fault
        if one.versions not in numbers:
            return HALF_LOADED
        known = bisect_left(ends, one.began)
        if known and numbers[one.versions] < newest[known - 1]:
            return BACKWARDS
        return ""

    found = [(kind, one) for one in asked if (kind := fault(one))]
    start = saves[0].began
    shown: list[dict[str, object]] = [
        {
            "kind": kind,
            "sent": one.client,
            "what": one.what or " and ".join(one.versions),
            "began": round(one.began - start, 4),
            "ended": round(one.ended - start, 4),
        }
        for kind, one in found[:SHOWN]
    ]
    longest = max((one.ended - one.began for one in asked), default=0.0)
    return Judgement(len(asked), Counter(kind for kind, _ in found), shown, longest)
