"""The study `loops` of 2005: one page, five pages in turn, or at random; from near and from far."""

from loadtests.studies.loops import report, steps
from loadtests.studies.study import Study
from loadtests.studies.uniserve.contestants import servers

STUDY = Study(
    steps.NAME,
    "pages in a loop, each on a connection of its own: here, in a network and from outside of it",
    "Uniserve, 2005",
    servers,
    steps.plan,
    report.report,
    steps.arguments,
)
