"""State of the watched files, to find changes by comparison.

inotify misses changes while its watches are set, when its queue overflows, and on some file
systems. Then all files are compared with this snapshot.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence

from poorhttp.plugins.dev.reload.watch.project import WatchedProject, inode_of

#: Nanoseconds within which a second write may leave the same time: the kernel's clock for files
#: ticks every 1 to 10 ms.
CLOCK_TICK = 20_000_000

#: Nanoseconds that a module may have been loaded before its folder was reported.
LOADED_BEFORE = 5_000_000_000


#: Symbolic links that are followed on the way to a file, as the kernel does.
MOST_LINKS = 40


#: What is known of a file: hash of its time of modification, size and inode; time of the last
#: change of its content or attributes (ctime), in nanoseconds; hash of its owner, permissions and
#: number of links.
State = tuple[int, int, int]


def state_of(status: os.stat_result) -> State:
    """Return the state of a file."""
    content = hash((status.st_mtime_ns, status.st_size, status.st_ino))
    attributes = hash((status.st_mode, status.st_uid, status.st_gid, status.st_nlink))
    return content, status.st_ctime_ns, attributes


def is_other(new: State, old: State) -> bool:
    """Whether a file was saved between two states, as far as that can be seen.

    `cp -p` and `rsync -t` may keep the size and the modification time of a file, but change its
    ctime. `chmod` changes the ctime too, and is no save: it also changes the mode.
    """
    return new[0] != old[0] or (new[1] != old[1] and new[2] == old[2])


class Snapshot:
    """The files that matter, by folder, each with its `State`.

    Attributes:
        files: those of each watched folder.
        absent: roots and added folders that did not exist at the last comparison.
    """

    def __init__(self, project: WatchedProject, since: int) -> None:
        """Take a project; record no file yet.

        Args:
            project: decides which files matter.
            since: a time in nanoseconds; at the first comparison, a file written later has changed.
        """
        self.files: dict[str, dict[str, State]] = {}
        self.absent: list[str] = []
        self._project = project
        self._begun = since
        self._since: int | None = since
        self._roles: dict[str, str] = {}
        self._extra_folders: dict[str, None] = {}
        # Folders of which only single files matter, and these files.
        self._single_files: dict[str, set[str]] = {}
        # Names in the project of each file that symbolic links lead to: a save changes that file.
        self._links: dict[str, set[str]] = {}
        # All symbolic links on the way from the project to a file or folder.
        self._on_the_way: set[str] = set()
        # Folders of the project with links into each folder.
        self._sources: dict[str, set[str]] = {}
        # Symbolic links to folders, as the project has them; also those that have vanished.
        self._folder_links = project.folder_links
        self._recent: set[str] = set()
        # Modification time of each polled folder.
        self._written: dict[str, int] = {}
        self._places: dict[str, tuple[int, int] | None] = {}
        for file in (*project.files, *project.archives):
            self._add_single(file)

    def add(self, folders: Iterable[str]) -> bool:
        """Watch further folders, without those below them; `True` if one is new."""
        fresh = [folder for folder in folders if folder not in self._extra_folders]
        self._extra_folders.update(dict.fromkeys(fresh))
        archives = {archive for folder in fresh if (archive := archive_of(folder))}
        for archive in archives - self._project.archives:
            self._project.archives.add(archive)
            self._add_single(archive)
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
        before, links_before = self.files, self._folder_links
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
        self._on_the_way = set()
        self._sources = {}
        self._recent.clear()
        for file in (*self._project.files, *self._project.archives):
            self._add_single(file)
        for folder, role, entries in self._project.walk():
            self._roles[folder] = role
            self._record(folder, entries)
            if os.path.islink(folder):
                self._add_link(folder)
        links = self._project.folder_links
        self._folder_links = links_before | links
        for link in links:
            self._add_link(link)
        for folder in self._single_files:
            self._record_folder(folder)
        for folder in _distinct([*self.files, *self._extra_folders]):
            self._record_folder(folder)
        loaded = max(time.time_ns() - LOADED_BEFORE, self._begun)
        for folder in before.keys() | self.files.keys():
            old = before.get(folder, {})
            new = self.files.get(folder, {})
            later = since
            added = folder in self._extra_folders and folder not in self._roles
            if added and folder not in before and folder not in absent_before:
                # The folder is not new, only its watching: changes count from about the time at
                # which its module was loaded.
                later = loaded
            for name in old.keys() | new.keys():
                before_it, now = old.get(name), new.get(name)
                if before_it is None or now is None or is_other(now, before_it):
                    path = os.path.join(folder, name)
                    oldest = later
                    if oldest is None and before_it is None and path in self._project.archives:
                        oldest = loaded
                    if oldest is None or _is_later(path, oldest):
                        changed[path] = self._kind(folder, path) or self._project.kind(path)
        for link in links_before.keys() & links.keys():
            # If both folders are in the project, no file has changed.
            if links[link] != links_before[link] and not _has_below(changed, link):
                changed[link] = links[link][0]
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
        for link, (kind, _) in self._folder_links.items() if changed else ():
            if _has_below(changed, link):
                self._folder_links[link] = kind, inode_of(link)
        return changed, other

    def differing(self, folders: Sequence[str]) -> list[str]:
        """Return those of the folders that differ from the last comparison.

        Also folders of the project with links into these.

        Called in each polling round: for 5,000 files, it takes half the time of `compare`.
        """
        found = []
        sources = (source for folder in folders for source in self._sources.get(folder, ()))
        for folder in dict.fromkeys([*folders, *sources]):
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
        for name, state in self.files.get(folder, {}).items():
            if is_other(state_of(os.stat(f"{folder}/{name}")), state):
                return True
        return False

    def has_moved(self) -> bool:
        """Whether a root is another folder than before, or an absent folder exists."""
        return any(inode_of(root) != place for root, place in self._places.items())

    def concerns_folders(self, path: str) -> bool:
        """Whether an event at a path may change the set of watched folders."""
        if path in self.files or path in self._on_the_way:
            return True
        folder = os.path.dirname(path)
        if os.path.islink(path) and self._kind(folder, path):
            # It leads to another file now, which has to be watched.
            return True
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
        names = {path, *self._links.get(path, ())}
        if self._links:
            # Its folder may be watched by another name, that of a link to it.
            names.update(self._links.get(os.path.realpath(path), ()))
        for name in sorted(names):
            kind = self._kind(os.path.dirname(name), name)
            if kind and self._differs(name, certain=certain, polled=False):
                found[name] = kind
        return found

    def _differs(self, path: str, *, certain: bool, polled: bool = True) -> bool:
        """Compare and record a file; `True` if it has changed since the last comparison.

        If a write is `certain`, a file written within `CLOCK_TICK` counts as changed, and one with
        another ctime. Unless it is `polled`, only its attributes have changed otherwise.
        """
        folder, name = os.path.split(path)
        files = self.files.get(folder)
        if files is None:
            return False
        old = files.get(name)
        recent = path in self._recent
        new = self._state(path)
        if new is None:
            files.pop(name, None)
            return old is not None
        files[name] = new
        if old is None or new[0] != old[0]:
            return True
        if certain:
            return recent or new[1] != old[1]
        return polled and is_other(new, old)

    def _record(self, folder: str, entries: Iterable[os.DirEntry[str]]) -> None:
        files = self.files[folder] = {}
        for entry in entries:
            path = os.path.join(folder, entry.name)
            has_kind = bool(self._kind(folder, path))
            if has_kind:
                state = self._state(path)
                if state is not None:
                    files[entry.name] = state
            if entry.is_symlink() and (has_kind or not os.path.exists(path)):
                # What it leads to may be there later.
                self._add_link(path)

    def _record_folder(self, folder: str) -> None:
        if folder not in self.files:
            try:
                with os.scandir(folder) as entries:
                    self._record(folder, entries)
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

    def _state(self, path: str) -> State | None:
        """Return the state of a file; `None` if it does not exist."""
        try:
            status = os.stat(path)
        except OSError:
            self._recent.discard(path)
            return None
        if abs(time.time_ns() - status.st_mtime_ns) < CLOCK_TICK:
            self._recent.add(path)
        else:
            self._recent.discard(path)
        return state_of(status)

    def _add_single(self, path: str) -> None:
        self._single_files.setdefault(os.path.dirname(path), set()).add(path)
        if os.path.realpath(path) != path:
            self._add_link(path)

    def _add_link(self, path: str) -> None:
        """Watch all symbolic links on the way to a file or folder, and the file."""
        links, real = links_to(path)
        self._on_the_way.update(links)
        self._links.setdefault(real, set()).add(path)
        for place in (*links, real):
            folder = os.path.dirname(place)
            self._single_files.setdefault(folder, set())
            self._sources.setdefault(folder, set()).add(os.path.dirname(path))


def links_to(path: str) -> tuple[list[str], str]:
    """Return the symbolic links on the way from a name in its folder, and where they lead."""
    folder, name = os.path.split(path)
    here, rest = os.path.realpath(folder), [name]
    links: list[str] = []
    while rest and len(links) < MOST_LINKS:
        part = rest.pop()
        if part == "..":
            here = os.path.dirname(here)
            continue
        place = os.path.join(here, part) if part not in ("", ".") else here
        try:
            target = os.readlink(place)
        except OSError:
            here = place
            continue
        links.append(place)
        if target.startswith("/"):
            here = "/"
        rest += reversed(target.split("/"))
    return links, here


def archive_of(folder: str) -> str:
    """Return the archive (zip, egg) in which a folder of modules is; empty if it is in none."""
    while folder != "/" and not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return folder if os.path.isfile(folder) else ""


def _has_below(paths: Iterable[str], folder: str) -> bool:
    return any(path.startswith(f"{folder}/") for path in paths)


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
