"""The study `loops` of 2005: one page, five pages in turn, or at random; from near and from far.

- `steps`: every server in every run, three loops each, over every network.
- `run`: the times of one loop in order, and their outliers.
- `report`: the report.
"""

from loadtests.servers.registry.uniserve import servers
from loadtests.studies.page_latency import report, steps
from loadtests.studies.study import Study

STUDY = Study(
    steps.NAME,
    "pages in a loop, each on a connection of its own: here, in a network and from outside of it",
    "Uniserve, 2005",
    servers,
    steps.plan,
    report.report,
    steps.arguments,
)
