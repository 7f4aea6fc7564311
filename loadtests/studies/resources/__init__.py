"""What a server uses while it is asked for pages in a network: processor, memory and traffic."""

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
