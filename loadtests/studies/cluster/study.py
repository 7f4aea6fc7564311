"""The study `cluster`: three hosts behind a balancer, restarted, and one of them cut off."""

from __future__ import annotations

from loadtests.studies.cluster.experiments import EXPERIMENTS, SETUPS, plan
from loadtests.studies.cluster.report import PROMISES, report
from loadtests.studies.study import QUICK, TINY, Scale, Study

STUDY = Study(
    "cluster",
    "restart three hosts behind a balancer, and cut one off, under load",
    "",
    lambda: SETUPS,
    plan,
    report,
    promises=PROMISES,
    experiments=tuple(EXPERIMENTS),
    scales=(Scale("full", 5, 0.1), QUICK, TINY),
)
