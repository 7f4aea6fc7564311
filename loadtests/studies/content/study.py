"""The study `content`: files, a site, CGI programs and template pages, beside web servers."""

from __future__ import annotations

from loadtests.servers.registry.content import SERVERS
from loadtests.studies.content.experiments import EXPERIMENTS, plan
from loadtests.studies.content.promises import PROMISES
from loadtests.studies.content.report import report
from loadtests.studies.study import QUICK, TINY, Scale, Study

STUDY = Study(
    "content",
    "compare servers of files, a site, CGI programs and template pages",
    "",
    lambda: list(SERVERS.values()),
    plan,
    report,
    promises=PROMISES,
    experiments=tuple(EXPERIMENTS),
    scales=(Scale("full", 5, 2.0), QUICK, TINY),
    wrk=True,
)
