"""docs/internals/request.md: each file and function that it names exists."""

from __future__ import annotations

import re

from tests.testkit.server import ROOT

PAGE = (ROOT / "docs/internals/request.md").read_text(encoding="utf-8")

#: A row of its tables: step, file, functions.
ROW = re.compile(r"^\| ([^|]+) \| `([^`|]+)` \| ((?:`\w+`(?:, )?)+) \|", re.MULTILINE)


def test_each_function_exists() -> None:
    for _, path, functions in ROW.findall(PAGE):
        source = (ROOT / path).read_text(encoding="utf-8")
        missing = [
            name
            for name in re.findall(r"\w+", functions)
            if not re.search(rf"\b(?:fn|def) {name}\b", source)
        ]
        assert missing == [], f"{path} has no function of this name"


def test_other_files_exist() -> None:
    """Those named in the text: by their path, or by the end of it."""
    folders = [ROOT, ROOT / "core"]
    for path in re.findall(r"`([\w/]+/\w+\.(?:rs|py))`", PAGE):
        assert any((folder / path).is_file() for folder in folders), path
    for name in re.findall(r"`(\w+\.(?:rs|py))`", PAGE):
        assert any((ROOT / "core").glob(f"*/src/**/{name}")), name
    for path, function in re.findall(r"`([\w/]+\.rs)` `(\w+)`", PAGE):
        assert f"fn {function}" in (ROOT / "core" / path).read_text(encoding="utf-8")


def test_each_row_is_read() -> None:
    way = [(step, path) for step, path, _ in ROW.findall(PAGE) if step.isdigit()]
    assert [int(step) for step, _ in way] == list(range(1, len(way) + 1))
    assert len({path for _, path in way}) == len(way)
    assert len(list(ROW.finditer(PAGE))) == PAGE.count("\n| ") - PAGE.count("\n| | file") - 1
