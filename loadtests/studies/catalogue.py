"""All studies, in the order of reports."""

from __future__ import annotations

from loadtests.studies import (
    deadconn,
    influence,
    loops,
    memory,
    ordered,
    parallel,
    power,
    resources,
    serial,
    webbench,
)
from loadtests.studies.study import Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        serial.STUDY,
        parallel.STUDY,
        memory.STUDY,
        loops.STUDY,
        power.STUDY,
        resources.STUDY,
        deadconn.STUDY,
        webbench.STUDY,
        influence.STUDY,
        ordered.STUDY,
    )
}
"""By name."""
