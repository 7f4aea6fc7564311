"""Loading the project's own modules as they are now, never as a stale `.pyc` has them.

Python takes a `.pyc` for right if it tells the source's size and the second it was saved in. Who
saves twice within a second, and changes a letter, gets the first of the two for ever. Here a `.pyc`
counts only if it was written so long after the source was last touched that it must be of it, and
none is written before that. In a large project nearly all of them are used, as ever.
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

    from poorhttp.dev.reload.watch.project import Project

#: Nanoseconds after which a source is at rest. What was saved in the same second could be mistaken
#: for it; the rest is for whoever had read the source before it was saved, and was still compiling.
SETTLE_TIME = 2_000_000_000

# The files that were loaded, and what they were then.
_loaded: dict[str, tuple[int, int]] = {}


class CheckedPycLoader(SourceFileLoader):
    """Python's own loader of source files, which also doubts what lies in `__pycache__`."""

    def path_stats(self, path: str) -> Mapping[str, Any]:
        """What a `.pyc` must tell of the source; asked when a module is about to be loaded.

        Raises:
            OSError: there is no such file.
        """
        found = os.stat(path)
        _loaded[path] = _changed_at(found), found.st_size
        return super().path_stats(path)

    def get_data(self, path: str) -> bytes:
        """Read a file; a `.pyc` that could be stale is none.

        Raises:
            OSError: there is no such file.
        """
        if path.endswith(".pyc") and not self._is_current(os.stat(path)):
            raise FileNotFoundError(f"{path} may be older than {self.path}")
        return super().get_data(path)

    def set_data(self, path: str, data: Buffer, *, _mode: int = 0o666) -> None:
        """Write a `.pyc`, unless it could be mistaken for that of the next save."""
        if time.time_ns() >= _changed_at(os.stat(self.path)) + SETTLE_TIME:
            super().set_data(path, data, _mode=_mode)

    def _is_current(self, compiled: os.stat_result) -> bool:
        # Both times: files that are unpacked or copied say that they were written long ago.
        written = min(compiled.st_mtime_ns, compiled.st_ctime_ns)
        return written >= _changed_at(os.stat(self.path)) + SETTLE_TIME


class CheckedPycFinder:
    """The finder before all others: what they find of the project's own is loaded fresh.

    They do the finding, those of editable installs too; so files, namespaces and archives are
    found as ever, and only the loader of a source file is another one.
    """

    def __init__(self, project: Project) -> None:
        """Take whose own is loaded so."""
        self.project = project

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of the project's own; any other is left to the other finders."""
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

    def invalidate_caches(self) -> None:
        """Forget nothing: it is the others who remember."""


def install(project: Project) -> None:
    """Load the project's own modules fresh from now on, those that targets name by file too.

    They are looked for anew, whatever the process that has forked this one has seen.
    """
    from poorhttp.targets import module

    sys.meta_path.insert(0, CheckedPycFinder(project))
    module.file_loader = CheckedPycLoader
    forget_folders()


def changed() -> Iterator[str]:
    """The files that were saved or removed since they were loaded."""
    for path, then in _loaded.items():
        try:
            found = os.stat(path)
        except OSError:
            yield path
            continue
        if (_changed_at(found), found.st_size) != then:
            yield path


def forget_folders() -> None:
    """Forget what was found in folders and archives, as `importlib.invalidate_caches` does.

    That one would load `importlib.metadata`, and half of the standard library with it.
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
    """When a file was last written or, which nobody can feign, put into its place."""
    return max(found.st_mtime_ns, found.st_ctime_ns)
