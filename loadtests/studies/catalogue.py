"""All studies, in the order in which they are told."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from loadtests.studies.study import Study

NAMES = (
    "serial",
    "parallel",
    "memory",
    "loops",
    "power",
    "resources",
    "deadconn",
    "webbench",
    "influence",
    "ordered",
)


def studies() -> dict[str, Study]:
    """By name."""
    found = {}
    for name in NAMES:
        if find_spec(f"loadtests.studies.{name}"):
            found[name] = import_module(f"loadtests.studies.{name}").STUDY
    return found
