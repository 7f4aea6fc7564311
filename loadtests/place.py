"""The place for tables in a page that somebody has written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from loadtests.errors import LabError

CONTENT_BEGIN, CONTENT_END = "<!-- content -->", "<!-- end of content -->"
CONTENT = f"""
## Content

Put here by `python -m loadtests report --content --into docs/benchmarks.md` from
`loadtests/results/content.jsonl`, which comes after each report.

{CONTENT_BEGIN}

{CONTENT_END}
"""

PROXIES_BEGIN, PROXIES_END = "<!-- proxies -->", "<!-- end of proxies -->"
PROXIES = f"""
## Behind a proxy

Put here by `python -m loadtests report --proxies --into docs/benchmarks.md` from
`loadtests/results/proxies.jsonl`, which comes after each report.

{PROXIES_BEGIN}

{PROXIES_END}
"""


def insert(page: Path, begin: str, end: str, parts: Iterable[list[str]]) -> None:
    """Puts parts, each a list of lines, into a page that somebody has written, between two marks.

    Raises LabError if there is no such place.
    """
    text = page.read_text(encoding="utf-8")
    before, first, rest = text.partition(begin)
    _, last, after = rest.partition(end)
    if not (first and last):
        raise LabError(f"{page} has no place for the tables: {begin} … {end}")
    tables = ["\n".join(part).strip() for part in parts]
    page.write_text("\n\n".join([before + begin, *tables, end + after]), encoding="utf-8")
