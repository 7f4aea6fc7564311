"""A study in its tiny form, and the parts of its report."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from loadtests import store
from loadtests.measure.cpu_affinity import cores
from loadtests.reporting.model import Section, Table
from loadtests.servers.registry import missing
from loadtests.stats.results import Results
from loadtests.studies import engine
from loadtests.studies.study import TINY, Study


def run(study: Study, folder: Path, servers: Sequence[Any], /, **options: object) -> Results:
    """The results of the study with these servers, as they are stored in a folder."""
    scale = next(one for one in study.scales if one.name == TINY.name)
    with closing(store.Store(folder / "results.jsonl", "run")) as writing, ExitStack() as fixtures:
        lab = engine.Lab(writing, scale.seconds, scale.rounds, *cores(), fixtures=fixtures)
        planned = study.plan(lab, scale, servers, Namespace(**options))
        assert len({step.what for step in planned}) == len(planned)
        engine.run(lab, planned, "test", study=study.name)
    return Results(store.load([writing.path])).of_study(study.name, study.experiments)


def chosen(study: Study, *names: str) -> list[Any]:
    """Servers of a study. Skips the test if one of them is not installed."""
    known = {server.name: server for server in study.servers()}
    if reason := next(filter(None, (missing(known[name]) for name in names)), ""):
        pytest.skip(reason)
    return [known[name] for name in names]


def failures(results: Results) -> set[str]:
    """The servers of which a measurement failed."""
    return {failure["server"] for failure in results.failures}


def tables(sections: Iterable[Section]) -> dict[str, Table]:
    """The tables of a report by their names."""
    return {part.name: part for one in sections for part in one.parts if isinstance(part, Table)}
