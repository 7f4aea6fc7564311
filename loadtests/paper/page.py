"""A page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Sequence

from loadtests.paper.model import Section
from loadtests.results import Results


def html(title: str, sections: Sequence[Section], results: Results) -> str:
    """The page, with all figures in it; `results` for where, when and how it was measured."""
    raise NotImplementedError
