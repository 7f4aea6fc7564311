"""A study in its tiny form, and the parts of its report."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
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


@contextmanager
def lab(folder: Path, seconds: float = TINY.seconds, **how: Any) -> Iterator[engine.Lab]:
    """What keeps its records in a folder, for one round."""
    server_core, client_core = cores()
    pinned = {"server_core": server_core, "client_core": client_core}
    with closing(store.Store(folder / "results.jsonl", "run")) as writing, ExitStack() as fixtures:
        yield engine.Lab(writing, seconds, **{"rounds": 1, **pinned, **how}, fixtures=fixtures)


def stored(lab: engine.Lab) -> Results:
    """What it has kept."""
    return Results(store.load([lab.store.path]))


def run(
    study: Study, folder: Path, servers: Sequence[Any], /, seconds: float = 0, **options: object
) -> Results:
    """The results of the study with these servers, as they are stored in a folder."""
    scale = next(one for one in study.scales if one.name == TINY.name)
    with lab(folder, seconds or scale.seconds, rounds=scale.rounds) as small:
        asked = Namespace(**{"names": study.experiments, **options})
        planned = study.plan(small, scale, servers, asked)
        assert len({step.what for step in planned}) == len(planned)
        engine.run(small, planned, "test", study=study.name)
    return stored(small).of_study(study.name, study.experiments)


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
    """The tables of a report by their names, each with as many cells in a row as columns."""
    found = {part.name: part for one in sections for part in one.parts if isinstance(part, Table)}
    for table in found.values():
        assert {len(row) for row in table.rows} <= {len(table.columns)}, table.name
    return found
