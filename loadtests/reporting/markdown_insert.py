"""Inserts tables between marks in a Markdown page."""

from __future__ import annotations

from pathlib import Path

from loadtests.errors import LabError


def insert(page: Path, study: str, tables: str) -> None:
    """Puts the tables of a study into a page that somebody has written, between its marks.

    Raises LabError if there is no such place.
    """
    begin, end = f"<!-- {study} -->", f"<!-- end of {study} -->"
    text = page.read_text(encoding="utf-8")
    before, first, rest = text.partition(begin)
    _, last, after = rest.partition(end)
    if not (first and last):
        raise LabError(f"{page} has no place for the tables: {begin} … {end}")
    parts = [before + begin, tables.strip(), end + after]
    page.write_text("\n\n".join(parts), encoding="utf-8")
