"""Saves files of a project as editors do: written beside the old file, then renamed."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from loadtests.servers.projects import FIRST, MAIN, SUB, Project

BOTH = "both"

Versions = tuple[str, str]
"""Of the main module and of the one that it imports."""


@dataclass(frozen=True)
class Save:
    """What was saved (MAIN, SUB, BOTH or nothing), when that began, and the versions from then on.

    The time is of the monotonic clock, which all processes share.
    """

    what: str
    began: float
    versions: Versions


class Author:
    """Saves files of one project; each version is a number that no other save has."""

    def __init__(self, project: Project) -> None:
        self.saves = [Save("", time.monotonic(), (FIRST, FIRST))]
        self._project = project
        self._files = {MAIN: project.kind.main, SUB: project.kind.sub}

    def save(self, what: str) -> Save:
        """Saves a file, or both of them one right after the other."""
        version = f"{len(self.saves):06}"
        main, sub = self.saves[-1].versions
        versions = (version if what != SUB else main, version if what != MAIN else sub)
        ready = []
        for name in (MAIN, SUB) if what == BOTH else (what,):
            file = self._files[name]
            beside = self._project.path.parent / name
            beside.write_text(self._project.text(file, version), encoding="utf-8")
            ready.append((beside, self._project.path / file))
        began = time.monotonic()
        for written, place in ready:
            os.replace(written, place)
        self.saves.append(Save(what, began, versions))
        return self.saves[-1]
