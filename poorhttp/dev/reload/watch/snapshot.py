"""State of the watched files, to find changes by comparison.

inotify misses changes while its watches are set, when its queue overflows, and on some file
systems. Then all files are compared with this snapshot.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from poorhttp.dev.reload.watch.project import Project, inode_of

#: Nanoseconds within which a second write may leave the same time: the kernel's clock for files
#: ticks every 1 to 10 ms.
CLOCK_TICK = 20_000_000

#: Nanoseconds that a module may have been loaded before its folder was reported.
LOADED_BEFORE = 5_000_000_000


class Snapshot:
    """The files that matter, by folder, each with a hash of its time, size and inode.

    Attributes:
        files: those of each watched folder.
        absent: roots and added folders that did not exist at the last comparison.
    """

    def __init__(self, project: Project, since: int) -> None:
        """Take a project; record no file yet.

        Args:
            project: decides which files matter.
            since: a time in nanoseconds; at the first comparison, a file written later has changed.
        """
        self.files: dict[str, dict[str, int]] = {}
        self.absent: list[str] = []
        self._project = project
        self._begun = since
        self._since: int | None = since
        self._roles: dict[str, str] = {}
        self._extra_folders: dict[str, None] = {}
        # Folders of which only single files matter, and these files.
        self._single_files: dict[str, set[str]] = {}
        # Symbolic links to each file: a save changes the file they lead to.
        self._links: dict[str, set[str]] = {}
        self._recent: set[str] = set()
        # Modification time of each polled folder.
        self._written: dict[str, int] = {}
        self._places: dict[str, tuple[int, int] | None] = {}
        for file in project.files:
            self._add_single(file)

    def add(self, folders: Iterable[str]) -> bool:
        """Watch further folders, without those below them; `True` if one is new."""
        fresh = [folder for folder in folders if folder not in self._extra_folders]
        self._extra_folders.update(dict.fromkeys(fresh))
        return any(folder not in self.files for folder in fresh)

    def folders(self) -> list[str]:
        """Return the folders to be watched, those of the project first."""
        return _distinct([*self._project.folders(), *self._single_files, *self._extra_folders])

    def watched(self) -> list[str]:
        """Return the watched folders as of the last comparison of all."""
        return _distinct(self.files)

    def is_project(self, folder: str) -> bool:
        """Whether a folder is watched for the project, not only for installed modules."""
        return folder in self._roles or folder in self._single_files

    def compare_all(self) -> dict[str, str]:
        """Compare and record all files; return changed paths with their kinds."""
        changed: dict[str, str] = {}
        before = self.files
        since, self._since = self._since, None
        absent_before = self.absent
        # Before the folders are read: a root that comes or goes meanwhile counts as moved.
        self._places = {
            root: inode_of(root) for root in (*self._project.roots, *self._single_files)
        }
        # inotify reports the removal of an added folder, but not its return.
        self._places.update(
            (folder, None) for folder in self._extra_folders if inode_of(folder) is None
        )
        self.files = {}
        self._roles = {}
        self._links = {}
        self._recent.clear()
        for file in self._project.files:
            self._add_single(file)
        for folder, role, entries in self._project.walk():
            self._roles[folder] = role
            self._record(folder, [entry.name for entry in entries])
            for entry in entries:
                if entry.is_symlink() and entry.name in self.files[folder]:
                    self._add_link(entry.path)
        for folder in self._single_files:
            self._record_folder(folder)
        for folder in _distinct([*self.files, *self._extra_folders]):
            self._record_folder(folder)
        for folder in before.keys() | self.files.keys():
            old = before.get(folder, {})
            new = self.files.get(folder, {})
            later = since
            added = folder in self._extra_folders and folder not in self._roles
            if added and folder not in before and folder not in absent_before:
                # The folder is not new, only its watching: changes count from about the time at
                # which its module was loaded.
                later = max(time.time_ns() - LOADED_BEFORE, self._begun)
            for name in old.keys() | new.keys():
                if old.get(name) != new.get(name):
                    path = os.path.join(folder, name)
                    if later is None or _is_later(path, later):
                        changed[path] = self._kind(folder, path) or self._project.kind(path)
        self.absent = [root for root, place in self._places.items() if place is None]
        return {path: kind for path, kind in changed.items() if kind}

    def compare(self, folders: Iterable[str]) -> tuple[dict[str, str], bool]:
        """Compare and record the files of some of the watched folders.

        Returns:
            Changed paths with their kinds, and whether there are other folders than before.
        """
        changed: dict[str, str] = {}
        other = False
        for folder in folders:
            known = self.files.get(folder)
            if known is None:
                continue
            names = []
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.name in known or not entry.is_dir():
                            names.append(entry.name)
                        elif entry.path not in self.files and folder in self._roles:
                            other = other or not self._project.is_excluded(entry.path)
            except OSError:
                other = True
            for name in {*names, *known}:
                path = os.path.join(folder, name)
                kind = self._kind(folder, path)
                if kind and self._differs(path, certain=False):
                    changed[path] = kind
        return changed, other

    def differing(self, folders: Iterable[str]) -> list[str]:
        """Return those of the folders that differ from the last comparison.

        Called in each polling round: for 5,000 files, it takes half the time of `compare`.
        """
        found = []
        for folder in folders:
            try:
                written = os.stat(folder).st_mtime_ns
                same = self._written.get(folder) == written
                self._written[folder] = written
                if not same or self._has_other_files(folder):
                    found.append(folder)
            except OSError:
                found.append(folder)
        return found

    def _has_other_files(self, folder: str) -> bool:
        for name, number in self.files.get(folder, {}).items():
            status = os.stat(f"{folder}/{name}")
            if hash((status.st_mtime_ns, status.st_size, status.st_ino)) != number:
                return True
        return False

    def has_moved(self) -> bool:
        """Whether a root is another folder than before, or an absent folder exists."""
        return any(inode_of(root) != place for root, place in self._places.items())

    def concerns_folders(self, path: str) -> bool:
        """Whether an event at a path may change the set of watched folders."""
        if path in self.files:
            return True
        folder = os.path.dirname(path)
        # Only in the project: below added folders nothing is watched.
        return folder in self._roles and os.path.isdir(path) and not self._project.is_excluded(path)

    def changed(self, path: str, *, certain: bool = True) -> dict[str, str]:
        """Compare and record a file that has had an event.

        Args:
            path: the file.
            certain: it has changed, even if its time, size and inode have not.

        Returns:
            The file, by all its names in the project, with the kind; empty if no change matters.
        """
        found = {}
        for name in (path, *self._links.get(path, ())):
            kind = self._kind(os.path.dirname(name), name)
            if kind and self._differs(name, certain=certain):
                found[name] = kind
        return found

    def _differs(self, path: str, *, certain: bool) -> bool:
        """Compare and record a file; `True` if it has changed since the last comparison.

        If a write is `certain`, a file written within `CLOCK_TICK` counts as changed.
        """
        folder, name = os.path.split(path)
        files = self.files.get(folder)
        if files is None:
            return False
        old = files.get(name)
        recent = path in self._recent
        new = self._fingerprint(path)
        if new is None:
            files.pop(name, None)
            return old is not None
        files[name] = new
        return new != old or (certain and recent)

    def _record(self, folder: str, names: Iterable[str]) -> None:
        files = self.files[folder] = {}
        for name in names:
            path = os.path.join(folder, name)
            if self._kind(folder, path):
                number = self._fingerprint(path)
                if number is not None:
                    files[name] = number

    def _record_folder(self, folder: str) -> None:
        if folder not in self.files:
            try:
                self._record(folder, os.listdir(folder))
            except OSError:
                return

    def _kind(self, folder: str, path: str) -> str:
        """Return the kind of a file's change, in a folder that is or was watched."""
        single = self._single_files.get(folder)
        if single is not None and path in single:
            return self._project.kind(path)
        role = self._roles.get(folder)
        if role is not None:
            return self._project.kind_in(role, path)
        return self._project.kind(path) if folder in self._extra_folders else ""

    def _fingerprint(self, path: str) -> int | None:
        """Return a hash of a file's time, size and inode; `None` if it does not exist."""
        try:
            status = os.stat(path)
        except OSError:
            self._recent.discard(path)
            return None
        if abs(time.time_ns() - status.st_mtime_ns) < CLOCK_TICK:
            self._recent.add(path)
        else:
            self._recent.discard(path)
        return hash((status.st_mtime_ns, status.st_size, status.st_ino))

    def _add_single(self, path: str) -> None:
        self._single_files.setdefault(os.path.dirname(path), set()).add(path)
        if os.path.realpath(path) != path:
            self._add_link(path)

    def _add_link(self, path: str) -> None:
        real = os.path.realpath(path)
        self._links.setdefault(real, set()).add(path)
        self._single_files.setdefault(os.path.dirname(real), set())


def _is_later(path: str, since: int) -> bool:
    try:
        return os.stat(path).st_mtime_ns >= since - CLOCK_TICK
    except OSError:
        return False


def _distinct(folders: Iterable[str]) -> list[str]:
    """Return the folders that exist, each once, by the first of its names."""
    found: dict[tuple[int, int], str] = {}
    for folder in folders:
        place = inode_of(folder)
        if place is not None:
            found.setdefault(place, folder)
    return list(found.values())
