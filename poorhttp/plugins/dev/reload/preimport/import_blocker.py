"""Blocks imports of the project's modules in the fork server.

A third-party module may import modules of the project: its settings, its plug-ins, optional modules
of a certain name. The fork server would keep their present code for ever. So each module is looked
up exactly as a generation would do it, and the project's own are refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from poorhttp.plugins.dev.reload.preimport.project_imports import ProjectImports


class ProjectImportRefused(ImportError):
    """A module of the project was imported."""


class ImportBlocker:
    """Context manager that is the first of the import system's finders.

    Attributes:
        project_imports: finds modules as a generation would.
        refused: the first module that was refused, even if the importer went on; or empty.
        path_changed: `sys.path` was changed inside the context; it is restored at its end.
    """

    def __init__(self, project_imports: ProjectImports, forbidden: str = "") -> None:
        """Take `forbidden`: the name of a module that counts as one of the project's."""
        self.project_imports = project_imports
        self.refused = ""
        self.path_changed = False
        self._forbidden = forbidden
        self._original_path: list[str] = []
        self._blocked_path: list[str] = []

    def __enter__(self) -> ImportBlocker:
        """Take the project's folders off `sys.path` as well: some modules search it themselves."""
        own = self.project_imports.own
        self._original_path = sys.path[:]
        self._blocked_path = [
            folder for folder in self._original_path if os.path.abspath(folder) not in own
        ]
        sys.path[:] = self._blocked_path
        sys.meta_path.insert(0, self)
        return self

    def __exit__(self, *_: object) -> None:
        # Finders that the modules have added stay.
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self.path_changed = sys.path != self._blocked_path
        sys.path[:] = self._original_path

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module (PEP 451).

        Raises:
            ProjectImportRefused: it is the project's own.
        """
        if name != self._forbidden:
            spec = self.project_imports.find(name, path)
            if spec is None or not (
                self.project_imports.is_own(spec) or self.project_imports.is_both(spec)
            ):
                return spec
        self.refused = self.refused or name
        raise ProjectImportRefused(f"{name} is the project's own", name=name)
