"""All studies, in the order of reports."""

from __future__ import annotations

from loadtests.studies import (
    client_effect,
    deadconn,
    latency_distribution,
    memory,
    page_latency,
    parallel,
    resources,
    scalability,
    serial,
    webbench,
)
from loadtests.studies.study import Study

STUDIES: dict[str, Study] = {
    "serial": serial.STUDY,
    "parallel": parallel.STUDY,
    "memory": memory.STUDY,
    "loops": page_latency.STUDY,
    "power": scalability.STUDY,
    "resources": resources.STUDY,
    "deadconn": deadconn.STUDY,
    "webbench": webbench.STUDY,
    "influence": client_effect.STUDY,
    "ordered": latency_distribution.STUDY,
}
"""By name, which is their command; `Makefile` reads it here."""
