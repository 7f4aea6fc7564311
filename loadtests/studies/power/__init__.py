"""The study `power` (R99 of 2005): throughput and response time by number of injectors."""

from loadtests.studies.power import report, steps
from loadtests.studies.study import Study

STUDY = Study(
    steps.NAME,
    "1 to 12 injectors at once: requests per second by who is active, and how the time grows",
    "Uniserve, 2005",
    steps.servers,
    steps.plan,
    report.report,
    steps.arguments,
)
