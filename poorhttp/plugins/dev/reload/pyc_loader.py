"""Import of the project's modules that never uses a stale `.pyc`.

Python accepts a `.pyc` that names the source's size and the second of its last change. After two
saves within a second that change a letter, the first of the two would be used for ever. Here a
`.pyc` counts only if it was written `SETTLE_TIME` after the source was last changed, and none is
written earlier. In a large project nearly all of them are still used.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import PathFinder, SourceFileLoader
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Any

    from _typeshed import ReadableBuffer as Buffer

    from poorhttp.plugins.dev.reload.watch.project import WatchedProject

#: Nanoseconds after which a source has settled: a second in which another save would look the same,
#: and another one for a process that had read the source before the save and was still compiling.
SETTLE_TIME = 2_000_000_000

# The time and size of each source file when it was loaded.
_loaded: dict[str, tuple[int, int]] = {}


class CheckedPycLoader(SourceFileLoader):
    """Python's loader of source files, with a stricter check of the `.pyc`."""

    def path_stats(self, path: str) -> Mapping[str, Any]:
        """Return what a `.pyc` must say of the source; Python calls it before loading a module.

        Raises:
            OSError: the file does not exist.
        """
        found = os.stat(path)
        _loaded[path] = _changed_at(found), found.st_size
        return super().path_stats(path)

    def get_data(self, path: str) -> bytes:
        """Read a file.

        Raises:
            OSError: the file does not exist, or is a `.pyc` that may be stale.
        """
        if path.endswith(".pyc") and not self._is_current(os.stat(path)):
            raise FileNotFoundError(f"{path} may be older than {self.path}")
        return super().get_data(path)

    def set_data(self, path: str, data: Buffer, *, _mode: int = 0o666) -> None:
        """Write a `.pyc`, unless the source has not settled."""
        if time.time_ns() >= _changed_at(os.stat(self.path)) + SETTLE_TIME:
            super().set_data(path, data, _mode=_mode)

    def _is_current(self, compiled: os.stat_result) -> bool:
        # Both times: an unpacked or copied file claims to have been written long ago.
        written = min(compiled.st_mtime_ns, compiled.st_ctime_ns)
        return written >= _changed_at(os.stat(self.path)) + SETTLE_TIME


class CheckedPycFinder:
    """First of the import system's finders: gives the project's modules the checking loader.

    The other finders find the module, those of editable installs too: files, namespaces and
    archives are found as ever, and only the loader of a source file is replaced.
    """

    def __init__(self, project: WatchedProject) -> None:
        """Take the project."""
        self.project = project

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module by the other finders (PEP 451)."""
        for finder in sys.meta_path:
            if finder is self:
                continue
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find else None
            if spec is not None:
                loader = spec.loader
                if type(loader) is SourceFileLoader and self.project.owns(loader.path):
                    spec.loader = CheckedPycLoader(loader.name, loader.path)
                return spec
        return None


def install(project: WatchedProject) -> None:
    """Load the project's modules with the check from now on, also those that targets name by file.

    Folders are read again, since the process that has forked this one may have cached them.
    """
    from poorhttp.targets import module

    sys.meta_path.insert(0, CheckedPycFinder(project))
    module.file_loader = CheckedPycLoader
    forget_folders()


def changed() -> Iterator[str]:
    """Yield the files that were saved or removed since they were loaded."""
    for path, then in _loaded.items():
        try:
            found = os.stat(path)
        except OSError:
            yield path
            continue
        if (_changed_at(found), found.st_size) != then:
            yield path


def forget_folders() -> None:
    """Clear the caches of finders as `importlib.invalidate_caches` does.

    That function would import `importlib.metadata`, and half of the standard library with it.
    """
    for folder, finder in list(sys.path_importer_cache.items()):
        if finder is None:
            del sys.path_importer_cache[folder]
        elif hasattr(finder, "invalidate_caches"):
            finder.invalidate_caches()
    for other in sys.meta_path:
        if other is not PathFinder and hasattr(other, "invalidate_caches"):
            other.invalidate_caches()
    metadata = sys.modules.get("importlib.metadata")
    if metadata is not None:
        metadata.MetadataPathFinder().invalidate_caches()


def _changed_at(found: os.stat_result) -> int:
    """Return when a file was last written or, which cannot be set, last renamed or replaced."""
    return max(found.st_mtime_ns, found.st_ctime_ns)
