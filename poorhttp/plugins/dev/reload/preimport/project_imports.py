"""Finds modules on a project's `sys.path`: whether each is the project's or a library's."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder

from poorhttp.config.settings import Settings
from poorhttp.plugins.dev.reload.named import FILE, MODULE, named, targets_of
from poorhttp.plugins.dev.reload.watch.project import WatchedProject
from poorhttp.targets.target import CODE


class ProjectImports:
    """The import path of a generation.

    Attributes:
        project: the user's own files.
        files: Python files that targets name.
        modules: modules that targets name.
        path: `sys.path` of a generation.
        own: the folders of it that are the project's.
    """

    def __init__(self, project: WatchedProject, services: Sequence[Settings]) -> None:
        """Take this process's `sys.path`, and add the folders of targets and of `pythonpath`."""
        self.project = project
        self.files: list[str] = []
        self.modules: list[str] = []
        for kind, place in map(named, targets_of(services)):
            if kind == MODULE:
                self.modules.append(place)
            elif kind == FILE or (kind == CODE and place.endswith(".py")):
                self.files.append(os.path.abspath(place))
            elif kind == CODE:
                self.files.append(os.path.abspath(os.path.join(place, "dispatch_table.py")))
        folders = [folder for settings in services for folder in settings.pythonpath]
        folders += [os.getcwd(), *map(_top, self.files), *sys.path]
        self.path = list(dict.fromkeys(map(os.path.abspath, folders)))
        self.own = [folder for folder in self.path if self._owns(folder)]

    def find(self, name: str, path: Sequence[str] | None = None) -> ModuleSpec | None:
        """Find a module as a generation would, without executing any.

        Args:
            name: of the module.
            path: `__path__` of its package, if it is in one.
        """
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            # An `ImportBlocker`, which would call this method again.
            if find is None or getattr(finder, "project_imports", None) is self:
                continue
            where = self.path if finder is PathFinder and path is None else path
            spec: ModuleSpec | None = find(name, where)
            if spec is not None:
                return spec
        return None

    def is_own(self, spec: ModuleSpec) -> bool:
        """Whether a module is the project's own, if only in parts."""
        if spec.has_location:
            return self.project.owns(spec.origin or "")
        return any(self._owns(folder) for folder in spec.submodule_search_locations or ())

    def is_both(self, spec: ModuleSpec) -> bool:
        """Whether the project has a module of this name too, later on the path.

        The two may be halves of one package (`pkgutil.extend_path`).
        """
        if "." in spec.name or not spec.has_location:
            return False
        try:
            own = PathFinder.find_spec(spec.name, self.own)
        except Exception:
            # The finder of archives compiles the module.
            return True
        return own is not None and own.loader is not None

    def name_of(self, file: str) -> tuple[str, bool]:
        """Return the name by which a file is imported, and whether it is a package."""
        parts = os.path.relpath(file, _top(file)).removesuffix(".py").split(os.sep)
        package = parts[-1] == "__init__"
        return ".".join(parts[:-1] if package else parts), package

    def _owns(self, folder: str) -> bool:
        # `owns` decides about files; this one need not exist.
        return self.project.owns(os.path.join(folder, "any.py"))


def _top(file: str) -> str:
    """Return the folder that a file is imported from: above its packages."""
    folder = os.path.dirname(file)
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    return folder
