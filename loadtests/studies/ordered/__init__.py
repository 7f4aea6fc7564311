"""Connect, processing and total time over the ordered requests, as in the KLone study.

`contents` is what is asked for, `contestants` who is asked, `times` the mathematics of the times,
`measuring` one sample, `planning` all of them, `klone` what the study had, `report` what is told.
"""

from __future__ import annotations

from loadtests.studies.ordered.contestants import everyone
from loadtests.studies.ordered.planning import NAME, plan
from loadtests.studies.ordered.report import sections
from loadtests.studies.study import Study

STUDY = Study(
    NAME,
    "connect, processing and total time over the ordered requests",
    "KLone",
    everyone,
    plan,
    sections,
)
