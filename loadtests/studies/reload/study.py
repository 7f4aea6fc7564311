"""The command `develop`."""

from __future__ import annotations

from loadtests.studies.reload import experiments, report
from loadtests.studies.reload.promises import PROMISES
from loadtests.studies.study import Study

STUDY = Study(
    "develop",
    "save files of projects, and see when servers that reload answer anew",
    "",
    experiments.everyone,
    experiments.plan,
    report.report,
    promises=PROMISES,
    experiments=tuple(experiments.EXPERIMENTS),
    scales=(experiments.FULL, experiments.QUICK, experiments.TINY),
)
