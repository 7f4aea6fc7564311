"""The study `resources`: CPU time, memory and traffic of a server under load in a network.

- `steps`: a loop against each server, sampled several times a second.
- `report`: the report.
"""

from loadtests.servers.lists.uniserve import servers
from loadtests.studies.resources import report, steps
from loadtests.studies.study import Study

STUDY = Study(
    steps.NAME,
    "processor, memory and traffic of a server over time, while one client asks",
    "Uniserve, 2005",
    servers,
    steps.plan,
    report.report,
)
