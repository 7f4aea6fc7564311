"""The study `overload`: more requests than can be answered, and short ones beside long ones."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace

from loadtests.reporting.model import Section
from loadtests.servers.registry import Server
from loadtests.servers.registry.studies import EIGHT_THREADS, OVERLOADED
from loadtests.stats.results import Results
from loadtests.studies import tables
from loadtests.studies.engine import Lab, Step
from loadtests.studies.overload import fair, open_load
from loadtests.studies.study import QUICK, TINY, Scale, Study, scales

SCALES = scales(
    *(Scale("full", 0, 2.0, each={fair.NAME: 3}), QUICK, TINY),
    factors=((open_load.NORMAL, 1.5, 2.0, 5.0), (open_load.NORMAL, 2.0), (open_load.NORMAL, 2.0)),
    # The share of the time before requests count.
    before=(1.0, 1.0, 0.05),
    # Seconds in which the highest rate is measured.
    closed=(1.5, 1.0, 0.5),
    connections=((16, 500), (16, 500), (8,)),
)


def servers() -> list[Server]:
    """Those of both experiments, each once."""
    return list(dict.fromkeys((*OVERLOADED, *EIGHT_THREADS)))


def plan(lab: Lab, scale: Scale, chosen: Sequence[Server], options: Namespace) -> list[Step]:
    """The steps of the experiments that were chosen."""
    steps: list[Step] = []
    if open_load.NAME in options.names:
        rounds = replace(lab, rounds=scale.rounds_of(open_load.NAME))
        steps += open_load.steps(
            rounds, scale, [one for one in chosen if one in OVERLOADED or one.given]
        )
    if fair.NAME in options.names:
        rounds = replace(lab, rounds=scale.rounds_of(fair.NAME))
        steps += fair.steps(rounds, [one for one in chosen if one in EIGHT_THREADS or one.given])
    return steps


def report(results: Results) -> list[Section]:
    """A section for each handler, and one for short requests beside long ones."""
    found = tables.by(tables.latest(results.samples), "experiment")
    told = open_load.report(found.get(open_load.NAME, []))
    return told + fair.report(found.get(fair.NAME, []))


STUDY = Study(
    open_load.NAME,
    "more requests than can be answered, from clients that leave; short requests beside long ones",
    "",
    servers,
    plan,
    report,
    experiments=(open_load.NAME, fair.NAME),
    given=True,
    scales=SCALES,
)
