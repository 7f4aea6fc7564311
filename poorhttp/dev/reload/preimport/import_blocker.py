"""What keeps the project out of a process that imports what others have written.

A third-party module may import the project: its settings, its plug-ins, whatever has the name of a
module that would be used if there were one. It would get the code of now, and have it for ever. So
each module is looked for exactly as a version would, and one of the project's own is refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType, TracebackType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from poorhttp.dev.reload.preimport.project_imports import ProjectImports


class ProjectImportRefused(ImportError):
    """The project's own was asked for."""


class ImportBlocker:
    """The finder before all others, for as long as it is entered.

    Attributes:
        project_imports: where modules are.
        refused: what was asked for and refused, even if nobody has minded; empty if nothing was.
        path_changed: `sys.path` was changed meanwhile; afterwards it is as it was.
    """

    def __init__(self, project_imports: ProjectImports, forbidden: str = "") -> None:
        """Take where modules are.

        Args:
            project_imports: the same.
            forbidden: name of a module that stands for one of the project's.
        """
        self.project_imports = project_imports
        self.refused = ""
        self.path_changed = False
        self._forbidden = forbidden
        self._original_path: list[str] = []
        self._blocked_path: list[str] = []

    def __enter__(self) -> ImportBlocker:
        """Take the project off `sys.path` as well: some look there by themselves."""
        own = self.project_imports.own
        self._original_path = sys.path[:]
        self._blocked_path = [
            folder for folder in self._original_path if os.path.abspath(folder) not in own
        ]
        sys.path[:] = self._blocked_path
        sys.meta_path.insert(0, self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # What the modules have put there stays.
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self.path_changed = sys.path != self._blocked_path
        sys.path[:] = self._original_path

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module that is not the project's.

        Raises:
            ProjectImportRefused: it is.
        """
        if name != self._forbidden:
            spec = self.project_imports.find(name, path)
            if spec is None or not (
                self.project_imports.is_own(spec) or self.project_imports.is_both(spec)
            ):
                return spec
        self.refused = self.refused or name
        raise ProjectImportRefused(f"{name} is the project's own", name=name)
