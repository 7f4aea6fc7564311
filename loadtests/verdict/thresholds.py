"""Conditions under which a comparison fails: `p99 > 1.1 * base`, `cpu > 250 us`, `slower`."""

from __future__ import annotations

import argparse
import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtests.stats.verdict import UNDECIDED
from loadtests.verdict.quantities import QUANTITIES, Verdict

_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "MiB": 1.0, "/s": 1.0, "%": 1.0, "": 1.0}
"""In the unit of a latency or of memory; CPU time is in µs."""
_CONDITION = re.compile(
    r"(?P<name>\w+)\s*(?P<sign>[<>])\s*(?P<number>\d+(?:\.\d+)?)\s*"
    r"(?:(?P<base>\*\s*base)|(?P<unit>us|ms|s|MiB|/s|%)?)"
)
HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "is not to be told"
CONDITION_HOLDS, NOT_TOLD = 3, 4
"""Exit codes."""


def add_arguments(add: Callable[..., Any], what: str) -> None:
    """Adds, by `add_argument`, the options of a gate besides its conditions; `what` is written."""
    told = f"what is not to be told fails, too: exit code {NOT_TOLD}"
    add("--strict", action="store_true", help=told)
    for kind in ("json", "csv", "junit"):
        add(f"--{kind}", type=Path, metavar="FILE", help=f"write the {what} as {kind.upper()}")


def exit_code(outcomes: Collection[str], *, strict: bool) -> int:
    """Returns the exit code for what became of the conditions."""
    if HOLDS in outcomes:
        return CONDITION_HOLDS
    return NOT_TOLD if strict and UNKNOWN in outcomes else 0


@dataclass(frozen=True)
class Condition:
    """`name` is a quantity; `number` a multiple of the first server's if `relative`, else a value.

    Without a sign it is a word that the verdict on CPU time per request has.
    """

    text: str
    name: str
    sign: str = ""
    number: float = 0.0
    relative: bool = True

    def is_beyond(self, value: float) -> bool:
        """Whether a value, in the unit of the quantity, is on the far side of the limit."""
        return value > self.number if self.sign == ">" else value < self.number

    def judged(self, verdicts: Mapping[str, Verdict]) -> str:
        """HOLDS or FAILS if the whole interval says so, else UNKNOWN."""
        if not self.sign:
            first = next(iter(verdicts.values()))
            known = not first.reason and first.ratio.is_alike(first.zone)
            if first.side == UNDECIDED and not known:
                return UNKNOWN
            return HOLDS if first.word == self.name else FAILS
        one = verdicts[self.name]
        limit = self.number if self.relative else self.number / one.before if one.before else 0.0
        beyond = operator.gt if self.sign == ">" else operator.lt
        # A run that names no winner knows no ratio either.
        if not one.reason and beyond(one.ratio.low, limit) and beyond(one.ratio.high, limit):
            return HOLDS
        if not one.reason and not (beyond(one.ratio.low, limit) or beyond(one.ratio.high, limit)):
            return FAILS
        return UNKNOWN


def condition(text: str, quantities: Collection[str] = QUANTITIES) -> Condition:
    """Reads the value of `--fail-if`; it is on one of these quantities."""
    if text in ("slower", "faster"):
        return Condition(text, text)
    found = _CONDITION.fullmatch(text.strip())
    if found is None or found["name"] not in quantities:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no condition such as 'p99 > 1.1 * base', 'memory > 80 MiB' or slower; "
            f"quantities: {' '.join(quantities)}"
        )
    unit = found["unit"] or ""
    number = float(found["number"])
    if not found["base"]:
        number *= _UNITS[unit] * (1e3 if found["name"] == "cpu" and unit else 1.0)
    return Condition(text, found["name"], found["sign"], number, bool(found["base"]))
