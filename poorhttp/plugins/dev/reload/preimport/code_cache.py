"""Caches compiled code of library modules that cannot be preimported.

Django's models, for instance, need the project's settings, so the fork server cannot import them.
But their place and their code are the same for each generation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType


class CachedCodeLoader(SourceFileLoader):
    """Loader of a source file whose code has been read before."""

    def __init__(self, fullname: str, path: str, code: CodeType) -> None:
        super().__init__(fullname, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        """Return the cached code."""
        return self._code


class CodeCache:
    """Code of modules in packages; in a generation, the first of the import system's finders.

    It is not used for a package whose path differs from that in the fork server.
    """

    def __init__(self) -> None:
        self._specs: dict[str, tuple[list[str], ModuleSpec]] = {}

    def add(self, name: str, owned: Callable[[str], bool]) -> None:
        """Cache a module's code, if its package is imported and its file is not `owned`."""
        parent = sys.modules.get(name.rpartition(".")[0])
        path = getattr(parent, "__path__", None)
        if path is None or name in self._specs:
            return
        try:
            spec = PathFinder.find_spec(name, path)
            loader = spec and spec.loader
            # The behaviour of a subclass is unknown.
            if spec is None or type(loader) is not SourceFileLoader or owned(loader.path):
                return
            code = loader.get_code(name)
        except Exception:
            # The generation that imports the module gets the exception.
            return
        if code is not None:
            spec.loader = CachedCodeLoader(name, loader.path, code)
            self._specs[name] = list(path), spec

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a cached module (PEP 451)."""
        if name in self._specs and path is not None:
            where, spec = self._specs[name]
            if where == list(path):
                return spec
        return None
