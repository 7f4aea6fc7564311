"""The study `power` (R99 of 2005): throughput and response time by number of injectors.

- `steps`: three injectors one after the other, then 1 to 12 at once, against each server.
- `own`, `workers`: injectors that are our own client, and workers of Locust.
- `injection`: the combined result of injectors.
- `report`: the report.
"""

from loadtests.studies.scalability import report, steps
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
