"""Sections as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loadtests.paper.model import Section


def tables(sections: Sequence[Section]) -> str:
    """Text and tables only, for a terminal."""
    raise NotImplementedError


def document(sections: Sequence[Section], figures: Path, link: str) -> str:
    """All of it; the figures are written into the folder `figures`, which is at `link`."""
    raise NotImplementedError
