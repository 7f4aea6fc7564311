"""The studies `proxies` and `gateways`: ours behind proxies; nginx before ours and before uWSGI."""

from __future__ import annotations

from loadtests.servers.proxies import setups
from loadtests.studies.proxies import experiments, promises, report
from loadtests.studies.study import QUICK, TINY, Scale, Study

SCALES = (Scale("full", 5, 0.7), QUICK, TINY)

PROXIES = Study(
    "proxies",
    "put lighttpd, nginx and HAProxy before one and two of our servers",
    "",
    setups.studied,
    experiments.proxies,
    report.proxies,
    promises=(promises.FAILED,),
    scales=SCALES,
    strict=True,
)
GATEWAYS = Study(
    "gateways",
    "put nginx before ours and before uWSGI, by each protocol",
    "",
    lambda: setups.GATEWAYS,
    experiments.gateways,
    report.gateways,
    promises=promises.COSTS,
    scales=SCALES,
    wrk=True,
    strict=True,
)
