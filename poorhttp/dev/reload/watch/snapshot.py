"""What the watched files were like when they were last looked at.

What the system tells may have gaps: while its watches are set anew, when its queue is full, and
where it does not reach. Then everything is compared with this.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from stat import S_ISDIR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.dev.reload.watch.project import Project

#: Nanoseconds within which a file may be written again and look the same: the kernel's clock for
#: files ticks every 1 to 10 ms.
CLOCK_TICK = 20_000_000

#: Nanoseconds that a module may have been loaded before its folder was told to us.
LOADED_BEFORE = 5_000_000_000


class Snapshot:
    """The files that matter, by folder, each with a number for its time, size and inode.

    Attributes:
        files: those of each folder that is watched.
        absent: roots, and folders added, that were not there when last looked.
    """

    def __init__(self, project: Project, since: int) -> None:
        """Know nothing yet.

        Args:
            project: says which files matter.
            since: a time in nanoseconds; a file that is new to us but not to the project has
                changed if it was written later.
        """
        self.files: dict[str, dict[str, int]] = {}
        self.absent: list[str] = []
        self._project = project
        self._begun = since
        self._since: int | None = since
        self._roles: dict[str, str] = {}
        self._extra_folders: dict[str, None] = {}
        # Folders of which single files matter, and those.
        self._single_files: dict[str, set[str]] = {}
        # Other names of files that are links: what is saved is what they lead to.
        self._links: dict[str, set[str]] = {}
        self._recent: set[str] = set()
        # When something was last added to a folder or taken away.
        self._written: dict[str, int] = {}
        self._places: dict[str, tuple[int, int] | None] = {}
        for file in project.files:
            self._add_single(file)

    def add(self, folders: Iterable[str]) -> bool:
        """Look at further folders too, but not below them; tell whether one is new."""
        fresh = [folder for folder in folders if folder not in self._extra_folders]
        self._extra_folders.update(dict.fromkeys(fresh))
        return any(folder not in self.files for folder in fresh)

    def folders(self) -> list[str]:
        """Return the folders that have to be watched, those of the project first."""
        return _distinct([*self._project.folders(), *self._single_files, *self._extra_folders])

    def watched(self) -> list[str]:
        """Return the same as it was when everything was last looked at."""
        return _distinct(self.files)

    def is_project(self, folder: str) -> bool:
        """Tell whether a folder is watched for more than what was installed in it."""
        return folder in self._roles or folder in self._single_files

    def look(self) -> dict[str, str]:
        """Look at everything, and return what has changed since, with what that means."""
        changed: dict[str, str] = {}
        before = self.files
        since, self._since = self._since, None
        absent_before = self.absent
        # Before they are read: a root that comes or goes meanwhile has moved since.
        self._places = {root: _place(root) for root in (*self._project.roots, *self._single_files)}
        # The system tells that one of these is removed, but not that it is there again.
        self._places.update(
            (folder, None) for folder in self._extra_folders if _place(folder) is None
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
                # It was there all the time, only we did not look; before we began nobody did.
                later = max(time.time_ns() - LOADED_BEFORE, self._begun)
            for name in old.keys() | new.keys():
                if old.get(name) != new.get(name):
                    path = os.path.join(folder, name)
                    if later is None or _is_later(path, later):
                        changed[path] = self._kind(folder, path) or self._project.kind(path)
        self.absent = [root for root, place in self._places.items() if place is None]
        return {path: kind for path, kind in changed.items() if kind}

    def look_at(self, folders: Iterable[str]) -> tuple[dict[str, str], bool]:
        """Look at some of the watched folders.

        Returns:
            What has changed, and whether there are other folders than before.
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
                            other = other or not self._project.is_foreign(entry.path)
            except OSError:
                other = True
            for name in {*names, *known}:
                path = os.path.join(folder, name)
                kind = self._kind(folder, path)
                if kind and self._differs(path, certain=False):
                    changed[path] = kind
        return changed, other

    def differing(self, folders: Iterable[str]) -> list[str]:
        """Return those of the folders that are not as when they were last looked at.

        It is what is done again and again where the system does not tell: for 5,000 files, half of
        what `look_at` takes.
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
        """Tell whether a root is another folder than it was, or an absent folder is there."""
        return any(_place(root) != place for root, place in self._places.items())

    def concerns_folders(self, path: str) -> bool:
        """Tell whether something that has happened to a path changes which folders there are."""
        if path in self.files:
            return True
        folder = os.path.dirname(path)
        # Only of the project: below others nothing is watched.
        return folder in self._roles and os.path.isdir(path) and not self._project.is_foreign(path)

    def changed(self, path: str, *, certain: bool = True) -> dict[str, str]:
        """Look at a file that something has happened to.

        Args:
            path: the file.
            certain: it is known to have changed, though it may look the same.

        Returns:
            The file, by all names that it has in the project, and what that means; empty if
            nothing did that matters.
        """
        found = {}
        for name in (path, *self._links.get(path, ())):
            kind = self._kind(os.path.dirname(name), name)
            if kind and self._differs(name, certain=certain):
                found[name] = kind
        return found

    def _differs(self, path: str, *, certain: bool) -> bool:
        """Look at a file again; tell whether it is another than the last time.

        Where the system has `certain` us of a change, one that looks the same may have changed.
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
        """Return what a change of a file means, in a folder that is watched or was."""
        single = self._single_files.get(folder)
        if single is not None and path in single:
            return self._project.kind(path)
        role = self._roles.get(folder)
        if role is not None:
            return self._project.kind_in(role, path)
        return self._project.kind(path) if folder in self._extra_folders else ""

    def _fingerprint(self, path: str) -> int | None:
        """Return a number that is another one when the file has changed; `None`: there is none."""
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
    """Return those that are there, each by the first of its names."""
    found: dict[tuple[int, int], str] = {}
    for folder in folders:
        place = _place(folder)
        if place is not None:
            found.setdefault(place, folder)
    return list(found.values())


def _place(folder: str) -> tuple[int, int] | None:
    """Return the device and inode of a folder; `None` if there is none of this name."""
    try:
        status = os.stat(folder)
    except OSError:
        return None
    # A module of a zip file lies in a "folder" that is a file.
    return (status.st_dev, status.st_ino) if S_ISDIR(status.st_mode) else None
