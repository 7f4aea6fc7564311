"""Whole reports of made-up results: promises, sentences, tables and what figures show.

`python -m tests.lab.studies.test_reports` writes them anew; look at the differences.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from loadtests import store
from loadtests.reporting import markdown, sheets
from loadtests.reporting.model import Table
from loadtests.studies import command

FOLDER = Path(__file__).parents[1] / "recorded" / "reports"
#: Details that repeat files of the repository: how it was measured, with which configuration.
REPEATED = ("Method", "Configurations")

#: About so many points of a figure are kept.
MOST = 30


def report(name: str) -> str:
    """What is told of results, with the points of figures as tables for spreadsheets."""
    studies = command.by_study(store.load([FOLDER / f"{name}.jsonl"]))
    told = [one for own in studies.values() for one in own if one.title not in REPEATED]
    figures = {part.name for one in told for part in one.parts if not isinstance(part, Table)}
    text = [markdown.tables(told)]
    with tempfile.TemporaryDirectory() as folder:
        for file in sorted(sheets.write(told, Path(folder))):
            if file.stem in figures:
                rows = file.read_text(encoding="utf-8").splitlines()
                text += [f"{file.name}:", *rows[:: 1 + len(rows) // MOST]]
    return "\n".join(text) + "\n"


NAMES = sorted(path.stem for path in FOLDER.glob("*.jsonl"))


@pytest.mark.parametrize("name", NAMES)
def test_report(name: str) -> None:
    assert report(name) == (FOLDER / f"{name}.md").read_text(encoding="utf-8")


if __name__ == "__main__":
    for name in NAMES:
        (FOLDER / f"{name}.md").write_text(report(name), encoding="utf-8")
