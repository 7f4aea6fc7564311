"""Inserts tables between marks in a Markdown page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from loadtests.errors import LabError


def insert(page: Path, study: str, tables: str) -> None:
    """Puts the tables of a study into a page that somebody has written, between its marks.

    Raises LabError if there is no such place.
    """
    insert_parts(page, f"<!-- {study} -->", f"<!-- end of {study} -->", [tables.splitlines()])


def insert_parts(page: Path, begin: str, end: str, parts: Iterable[list[str]]) -> None:
    """Puts parts, each a list of lines, between two marks. Raises LabError if one is missing."""
    text = page.read_text(encoding="utf-8")
    before, first, rest = text.partition(begin)
    _, last, after = rest.partition(end)
    if not (first and last):
        raise LabError(f"{page} has no place for the tables: {begin} … {end}")
    tables = ["\n".join(part).strip() for part in parts]
    page.write_text("\n\n".join([before + begin, *tables, end + after]), encoding="utf-8")
