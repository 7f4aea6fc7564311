"""Figures of README and docs, made from the stored results of all studies."""

from __future__ import annotations

import re
from pathlib import Path

from loadtests import store
from loadtests.programs import ROOT
from loadtests.reporting.model import Listing, Table
from loadtests.reporting.names import named
from loadtests.stats.results import Results
from loadtests.studies import command

_SHOWN = re.compile(r"!\[[^]]*\]\(([^)\s]+\.svg)\)")


def shown(root: Path) -> set[Path]:
    """The SVG files that README and docs of a project show."""
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    return {
        (page.parent / link).resolve()
        for page in pages
        for link in _SHOWN.findall(page.read_text(encoding="utf-8"))
    }


def make(root: Path = ROOT) -> list[str]:
    """Draws each figure where it is shown; a file is named for its figure, as reports name it.

    Returns a line for each that is shown and has no results, and for each that is not shown.
    """
    # Only now: matplotlib is slow to load.
    from loadtests.reporting.figures import figure

    missing = shown(root)
    unshown = set((root / "docs").rglob("*.svg")) - missing
    for path in sorted((root / store.RESULTS.relative_to(ROOT)).glob("*.jsonl*")):
        records = store.load([path])
        told = command.sections(Results(records), command.reported(records))
        for _, parts in named(told):
            for name, part in parts:
                if isinstance(part, (Table, Listing)):
                    continue
                for place in [place for place in missing if place.stem == name]:
                    place.write_text(figure.document(part), encoding="utf-8")
                    missing.remove(place)
    lines = [f"{path.relative_to(root)} is shown, and no results have it" for path in missing]
    return sorted([*lines, *(f"{path.relative_to(root)} is not shown" for path in unshown)])
