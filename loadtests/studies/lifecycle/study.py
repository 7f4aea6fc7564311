"""The command `operate`."""

from __future__ import annotations

from loadtests.servers.registry.lifecycle import SERVERS
from loadtests.studies.lifecycle import experiments, report
from loadtests.studies.lifecycle.promises import PROMISES
from loadtests.studies.lifecycle.trial import FULL, QUICK, TINY
from loadtests.studies.study import Study

STUDY = Study(
    "operate",
    "reload, upgrade, recycle, kill, time out and stop servers under load",
    "",
    lambda: SERVERS,
    experiments.plan,
    report.report,
    promises=PROMISES,
    experiments=tuple(experiments.TRIALS),
    scales=(FULL, QUICK, TINY),
)
