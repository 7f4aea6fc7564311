"""A section of a report: a table of what failed under load, by server and experiment."""

from __future__ import annotations

from collections import Counter

from loadtests.reporting.model import Column, Section, Table
from loadtests.stats.results import Results

COLUMNS = (Column("server"), Column("experiment"), Column("what failed"), Column("the first"))


def sections(study: str, results: Results) -> list[Section]:
    """The records `faults` in a table with an example of each; nothing if there are none."""
    kinds: dict[tuple[str, str], Counter[str]] = {}
    examples: dict[tuple[str, str], str] = {}
    for record in results.faults:
        key = (record["server"], record["experiment"])
        kinds.setdefault(key, Counter()).update(record["kinds"])
        if record["shown"]:
            first = record["shown"][0]
            told = f"{first['sent']}: {first['kind']}, {first['what']}"
            examples.setdefault(key, told[:160])
    rows = [
        (*key, ", ".join(f"{n:,} {kind}" for kind, n in sorted(found.items())), examples.get(key))
        for key, found in kinds.items()
    ]
    made = Table(f"{study}-faults", "", COLUMNS, rows)
    return [Section("What failed", parts=[made], detail=True)] if rows else []
