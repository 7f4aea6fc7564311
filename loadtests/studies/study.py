"""The class of a study: its servers, steps and report."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from loadtests.reporting.model import Section
from loadtests.servers.registry import Server
from loadtests.stats.results import Results
from loadtests.studies.engine import Lab, Step


@dataclass(frozen=True)
class Scale:
    """How much is done. `seconds` is for one sample; `share` of what the old study did."""

    name: str
    rounds: int
    seconds: float
    share: float


TINY = Scale("tiny", 1, 0.2, 0.01)
"""Whether it works: seconds for a study, with two servers."""
QUICK = Scale("quick", 1, 1.0, 0.1)
"""For a look: below two minutes for a study."""
FULL = Scale("full", 3, 3.0, 1.0)
"""What is reported."""

Plan: TypeAlias = Callable[[Lab, Scale, Sequence[Server], argparse.Namespace], list[Step]]
"""The steps of a study, in interleaved rounds. Each has another `what`: a run that was interrupted
leaves out those that are done."""


def no_arguments(parser: argparse.ArgumentParser) -> None:
    """A study that has no options of its own."""


@dataclass(frozen=True)
class Study:
    """`name` is its command and the `experiment` of its records, `source` the old document.

    `servers` are all it knows, in the order of its tables; `report` is given its own results only.
    """

    name: str
    summary: str
    source: str
    servers: Callable[[], Sequence[Server]]
    plan: Plan
    report: Callable[[Results], list[Section]]
    arguments: Callable[[argparse.ArgumentParser], None] = no_arguments
