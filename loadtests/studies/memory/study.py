"""The study `memory`: use by configuration, over time and by line of source, and leaks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from loadtests.servers.registry import Server
from loadtests.servers.registry.studies import MEMORY
from loadtests.studies import sample
from loadtests.studies.engine import Lab, Step
from loadtests.studies.memory import by_line, curve, leak, moments
from loadtests.studies.memory.examples import EXAMPLES
from loadtests.studies.memory.report import report
from loadtests.studies.study import QUICK, Scale, Study

NAME = "memory"
ENDURING = (
    "poorhttp single",
    "poorhttp forking 2",
    "poorhttp threading 8",
    "poorhttp gevent",
)
"""Each mode, for the leak check."""
PHASE_SECONDS = 0.15, 0.5
"""Of a curve, for a look and at full scale."""
REQUESTS = 60_000
"""Of a leak check at full scale, the warm-up not counted."""
STAGES = 20
CALLS = 500
"""Of an example application at full scale."""


def plan(
    lab: Lab, scale: Scale, chosen: Sequence[Server], options: argparse.Namespace
) -> list[Step]:
    """All servers in rounds, their curves, the leak check of our modes, the examples by line."""
    del options
    rounds = sample.rounds(lab, chosen, NAME, partial(moments.take, lab, NAME))
    seconds = PHASE_SECONDS[scale.share >= 1]
    curves = [curve.step(lab, NAME, server, seconds) for server in chosen]
    enduring = [server for server in chosen if server.name in ENDURING]
    checks = [leak.step(lab, NAME, server, stages(scale.share)) for server in enduring]
    calls = max(5, round(CALLS * scale.share))
    return rounds + curves + checks + [by_line.step(lab, NAME, one, calls) for one in EXAMPLES]


def stages(share: float) -> leak.Stages:
    """A warm-up, and at least ten stages. What only has to work has no time to be warm."""
    count = max(10, round(STAGES * share))
    requests = max(50, round(REQUESTS * share / count))
    return leak.Stages(leak.WARM_UP if share >= QUICK.share else requests, count, requests)


STUDY = Study(
    NAME,
    "memory idle, under load and over time, by line, and whether it leaks",
    "the Poor HTTP study of 2010",
    lambda: MEMORY,
    plan,
    report,
)
