"""The study `resources`: CPU time, memory and traffic of a server under load in a network."""

from loadtests.studies.resources import report, steps
from loadtests.studies.study import Study
from loadtests.studies.uniserve.contestants import servers

STUDY = Study(
    steps.NAME,
    "processor, memory and traffic of a server over time, while one client asks",
    "Uniserve, 2005",
    servers,
    steps.plan,
    report.report,
)
