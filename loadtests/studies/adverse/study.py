"""The study `endure`: live clients beside dead, slow and non-reading ones, and large requests."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from loadtests.servers import registry
from loadtests.servers.registry import Server
from loadtests.studies.adverse import experiments, promises, report
from loadtests.studies.bench.study import asked_for
from loadtests.studies.engine import Lab, Step
from loadtests.studies.study import FULL, QUICK, TINY, Scale, Study


def _plan(
    lab: Lab, scale: Scale, servers: Sequence[Server], options: argparse.Namespace
) -> list[Step]:
    """The experiments one after another."""
    lab = replace(lab, servers=asked_for(servers, options))
    amount = experiments.SMALL if scale.name == TINY.name else experiments.FULL
    return [step for name in options.names for step in experiments.EXPERIMENTS[name](lab, amount)]


STUDY = Study(
    "endure",
    "run the experiments with dead, slow and large clients",
    "",
    lambda: registry.SERVERS,
    _plan,
    report.report,
    promises=promises.PROMISES,
    usual=experiments.MODES,
    experiments=tuple(experiments.EXPERIMENTS),
    scales=(replace(FULL, rounds=4, seconds=2.0), QUICK, TINY),
    wrk=True,
)
