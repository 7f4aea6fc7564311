"""File names of tables and figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from loadtests.reporting.model import Figure, Listing, Section, Table

Part: TypeAlias = Table | Figure | Listing


def named(sections: Sequence[Section]) -> Iterator[tuple[Section, list[tuple[str, Part]]]]:
    """Each section with its parts, each of which has another name that a file may have."""
    taken: set[str] = set()
    for section in sections:
        parts: list[tuple[str, Part]] = []
        for part in section.parts:
            plain = re.sub(r"[^\w.+-]+", "-", part.name).strip("-.") or "part"
            name, number = plain, 1
            while name in taken:
                number += 1
                name = f"{plain}-{number}"
            taken.add(name)
            parts.append((name, part))
        yield section, parts
