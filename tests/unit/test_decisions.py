"""docs/internals/decisions: each record has its parts, and stands in the index."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from tests.testkit.server import ROOT

FOLDER = ROOT / "docs/internals/decisions"
RECORDS = sorted(path for path in FOLDER.glob("*.md") if path.name != "index.md")


def test_index() -> None:
    rows = re.findall(
        r"^\| (\d{4}) \| (\S+) \| \[(.*)\]\((.*)\) \|$", (FOLDER / "index.md").read_text(), re.M
    )
    assert [name for *_, name in rows] == [path.name for path in RECORDS]
    for number, (shown, day, title, name) in enumerate(rows, 1):
        assert shown == name[:4] == f"{number:04}"
        assert (FOLDER / name).read_text().startswith(f"# {title}\n\nDate: {day}\n")


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_a_record_has_its_parts(path: Path) -> None:
    parts = re.fullmatch(
        r"# \S.*\n\nDate: (\S+)\n\n\*\*Decided\*\*: \S.*\n\n\*\*Rejected\*\*:\n\n(- \S.*\n)+\n"
        r"\*\*Evidence\*\*: \S.*\n(\n\|.*\n(\|.*\n)+)?",
        path.read_text(),
    )
    assert parts is not None
    date.fromisoformat(parts[1])
