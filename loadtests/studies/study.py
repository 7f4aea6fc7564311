"""The class of a study: its servers, steps and report."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, TypeAlias

from loadtests.reporting.model import Section
from loadtests.reporting.promises import Promise
from loadtests.stats.results import Results
from loadtests.studies.engine import Lab, Step


@dataclass(frozen=True)
class Scale:
    """How much is done. `seconds` is for one sample; `share` of what the old study did.

    `each` are the rounds of single experiments where `rounds` is 0, and 1 those of all others;
    `amounts` are those that a study has of its own.
    """

    name: str
    rounds: int
    seconds: float
    share: float = 1.0
    each: Mapping[str, int] = field(default_factory=dict)
    amounts: SimpleNamespace = field(default_factory=SimpleNamespace)

    def rounds_of(self, experiment: str) -> int:
        return self.rounds or self.each.get(experiment, 1)


TINY = Scale("tiny", 1, 0.2, 0.01)
"""Whether it works: seconds for a study, with two servers."""
QUICK = Scale("quick", 1, 1.0, 0.1)
"""For a look: below two minutes for a study."""
FULL = Scale("full", 3, 3.0, 1.0)
"""What is reported."""


def scales(*known: Scale, **amounts: tuple[Any, ...]) -> tuple[Scale, ...]:
    """Scales with a study's own amounts; each amount is given for all of them, in their order."""
    return tuple(
        replace(scale, amounts=SimpleNamespace(**dict(zip(amounts, own, strict=True))))
        for scale, own in zip(known, zip(*amounts.values(), strict=True), strict=True)
    )


Plan: TypeAlias = Callable[[Lab, Any, Sequence[Any], Namespace], list[Step]]
"""The steps of a study at one of its scales, in interleaved rounds. Each has another `what`: a run
that was interrupted leaves out those that are done."""


@dataclass(frozen=True)
class Study:
    """`name` is its command, `source` the old document; empty if the study is of ours.

    `servers` are all it knows, in the order of its tables; those named in `usual`, or else all, are
    measured if none are asked for. `report` is given its own results only.

    One that takes `given` servers can measure those that the command line names: with applications
    of their own, too.

    `experiments` are its parts that can be chosen on the command line, each the `experiment` of its
    records; the plan gets those that were chosen as `names`. A study without parts has records of
    its own name. Samples of the studies `also` count for its promises, too. The first of `scales`
    is the default. With `wrk` its load is that of wrk, whose version is stored. With `strict` a run
    of which a measurement failed ends with an error.
    """

    name: str
    summary: str
    source: str
    servers: Callable[[], Sequence[Any]]
    plan: Plan
    report: Callable[[Results], list[Section]]
    arguments: Callable[[ArgumentParser], None] = lambda parser: None
    promises: Sequence[Promise] = ()
    experiments: Sequence[str] = ()
    also: Sequence[str] = ()
    scales: Sequence[Scale] = (QUICK, FULL, TINY)
    usual: Sequence[str] = ()
    given: bool = False
    wrk: bool = False
    strict: bool = False
