"""The code of modules that each version imports itself, read once, in the keeper.

Django's models, say: they need the project's settings, so no keeper can import them. But where they
are and what is in their files is the same for each version.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder, SourceFileLoader
from types import CodeType, ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec


class CachedCodeLoader(SourceFileLoader):
    """Python's own loader of source files, which has read its file already."""

    def __init__(self, fullname: str, path: str, code: CodeType) -> None:
        super().__init__(fullname, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        """Return what was read."""
        return self._code


class CodeCache:
    """Keeps the code of modules in packages; in a version, a finder before all others.

    A package that has another path there than in the keeper is looked through as ever.
    """

    def __init__(self) -> None:
        self._specs: dict[str, tuple[list[str], ModuleSpec]] = {}

    def add(self, name: str, owned: Callable[[str], bool]) -> None:
        """Keep a module, if its package is here and its file is not `owned`."""
        parent = sys.modules.get(name.rpartition(".")[0])
        path = getattr(parent, "__path__", None)
        if path is None or name in self._specs:
            return
        try:
            spec = PathFinder.find_spec(name, path)
            loader = spec and spec.loader
            # Of subclasses nobody knows what they do.
            if spec is None or type(loader) is not SourceFileLoader or owned(loader.path):
                return
            code = loader.get_code(name)
        except Exception:
            # Whoever imports it will be told.
            return
        if code is not None:
            spec.loader = CachedCodeLoader(name, loader.path, code)
            self._specs[name] = list(path), spec

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module that was kept."""
        if name in self._specs and path is not None:
            where, spec = self._specs[name]
            if where == list(path):
                return spec
        return None
