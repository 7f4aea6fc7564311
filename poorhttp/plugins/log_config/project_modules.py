"""Has modules of the project found while `log_config` is applied, before the application loads."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

from poorhttp.config.settings import Settings
from poorhttp.targets.module import SCRIPT, package_of

#: Modules of the project that a file of `log_config` had imported, by the process that did it.
_imported: dict[int, set[str]] = {}


@contextmanager
def found(settings: Settings, folder: str) -> Iterator[None]:
    """Extend Python's path as the application's load does; `folder`: that of relative paths.

    A process imports anew what it has from the process that has forked it: a reload would keep the
    code of a package that holds a handler and the application.
    """
    own = os.getpid()
    for process in _imported.keys() - {own}:
        for name in _imported.pop(process):
            sys.modules.pop(name, None)
    folders = _folders(settings, folder)
    before = set(sys.modules)
    sys.path[:0] = folders
    try:
        yield
    finally:
        for each in folders:
            # What was imported may have changed the path.
            if each in sys.path:
                sys.path.remove(each)
        added = {name: sys.modules[name] for name in sys.modules.keys() - before}
        names = {name for name, module in added.items() if _is_in(module, folders)}
        _imported.setdefault(own, set()).update(names)


def _folders(settings: Settings, folder: str) -> list[str]:
    """Return the folders in which the application looks for its modules first."""
    folders = [folder, *(os.path.join(folder, each) for each in settings.pythonpath)]
    file = os.path.join(folder, settings.target)
    if not os.path.isfile(file):
        file = file.rpartition(":")[0]
    if file.endswith((".py", SCRIPT)):
        folders.insert(0, package_of(file)[0])
    return folders


def _is_in(module: ModuleType, folders: Sequence[str]) -> bool:
    """Whether a module is in one of the folders, and not in an environment that is there, too."""
    spec = getattr(module, "__spec__", None)
    places = [
        getattr(module, "__file__", None),
        *(getattr(spec, "submodule_search_locations", None) or ()),
    ]
    for place in places:
        if isinstance(place, str) and not place.startswith((sys.prefix, sys.base_prefix)):
            return any(place.startswith(os.path.join(each, "")) for each in folders)
    return False
