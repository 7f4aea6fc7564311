"""Makes a package importable under its name in earlier releases, such as `poorhttp.dispatch`."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class FormerName:
    """Finds a package, and its modules, under a former name: the modules are the same objects."""

    def __init__(self, name: str, real: str) -> None:
        self.name = name
        self.real = real

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module; `None` if it is not one of this package."""
        if not f"{name}.".startswith(f"{self.name}."):
            return None
        # It has what is called of a loader, and need not be of the class.
        loader: Any = self
        return ModuleSpec(name, loader)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module under its present name."""
        module = import_module(self.real + spec.name[len(self.name) :])
        # The import system sets it to that of the former name.
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is to be run any more: the module is loaded."""
        module.__spec__ = self._spec


def add(name: str, real: str) -> None:
    """Make the package `real` known as `name` too."""
    sys.meta_path.insert(0, FormerName(name, real))
    del sys.modules[name]
    import_module(name)
