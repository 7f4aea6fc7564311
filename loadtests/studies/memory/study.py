"""The study `memory`: use by configuration, over time and by line of source, and leaks."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from loadtests.reporting.model import Section
from loadtests.servers.registry import OURS, Server
from loadtests.servers.registry.studies import MEMORY
from loadtests.stats.results import Results
from loadtests.studies.engine import Lab, Step, rounds
from loadtests.studies.memory import by_line, curve, leak, moments
from loadtests.studies.memory.moments import NAME
from loadtests.studies.study import QUICK, Scale, Study

PHASE_SECONDS = 0.15, 0.5
"""Of a curve, for a look and at full scale."""
REQUESTS = 60_000
"""Of a leak check at full scale, the warm-up not counted."""
STAGES = 20
CALLS = 500
"""Of an example application at full scale."""


def plan(lab: Lab, scale: Scale, chosen: Sequence[Server], options: Namespace) -> list[Step]:
    """All servers in rounds, their curves, the leak check of our modes, the examples by line."""
    seconds = PHASE_SECONDS[scale.share >= 1]
    calls = max(5, round(CALLS * scale.share))
    enduring = [server for server in chosen if server in OURS]
    steps = rounds(lab, NAME, chosen, moments.take)
    for what, take, servers in (
        (curve.SCENARIO, partial(curve.take, seconds=seconds), chosen),
        (leak.SCENARIO, partial(leak.take, ends=stages(scale.share)), enduring),
        (by_line.SCENARIO, partial(by_line.take, calls=calls), [*by_line.SUBJECTS]),
    ):
        steps += rounds(replace(lab, rounds=1), NAME, servers, take, f" {what}")
    return steps


def stages(share: float) -> range:
    """After how many requests the warm-up and each of at least ten stages of a leak check end.

    What only has to work has no time to be warm.
    """
    count = max(10, round(STAGES * share))
    requests = max(50, round(REQUESTS * share / count))
    warm_up = leak.WARM_UP if share >= QUICK.share else requests
    return range(warm_up, warm_up + count * requests + 1, requests)


def report(results: Results) -> list[Section]:
    """A section for each part that was measured."""
    parts = (
        (moments.LAST, moments.section),
        (curve.SCENARIO, curve.section),
        (leak.SCENARIO, leak.section),
        (by_line.SCENARIO, by_line.section),
    )
    return [section(results) for scenario, section in parts if results.servers(scenario)]


STUDY = Study(
    NAME,
    "memory idle, under load and over time, by line, and whether it leaks",
    "the Poor HTTP study of 2010",
    lambda: MEMORY,
    plan,
    report,
    given=True,
)
