"""The study `auto`: a small run of both experiments, and its report."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadtests.reporting.model import Panels
from loadtests.studies import auto
from tests.lab.studies.small_run import chosen, failures, run, tables


def test_a_small_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Half of a day.
    monkeypatch.setattr(auto, "DAY_LONG", auto.DAY_LONG[:3])
    servers = chosen(auto.STUDY, "poorhttp auto", "poorhttp threads 8")
    results = run(auto.STUDY, tmp_path, servers)
    assert not failures(results)
    sections = auto.report(results)
    found = tables(sections)
    assert len(found) == 2
    for table in found.values():
        assert {str(row[0]) for row in table.rows} == {one.name for one in servers}
    [day] = [part for one in sections for part in one.parts if isinstance(part, Panels)]
    assert [panel.name.rpartition("-")[2] for panel in day.panels] == [
        *("answered", "p99", "threads", "memory")
    ]
    assert all(line.points for panel in day.panels for line in panel.lines)
