"""The watched project: which files belong to it, and whether a change reloads code or pages."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from stat import S_ISDIR

from poorhttp.config.settings import Settings
from poorhttp.logs.frames import SERVER_FOLDER
from poorhttp.plugins.dev.options import Development
from poorhttp.plugins.dev.reload.named import FILE, MODULE, named, targets_of
from poorhttp.plugins.dev.reload.watch.glob_pattern import Glob
from poorhttp.targets.target import CODE, CONFIGURATION, FILES, PROGRAMS, TEMPLATES

#: Folders that are watched at most, and entries that are read at most to find them. More are there
#: if the server was started in a home folder, or serves an archive.
FOLDERS = 10_000
ENTRIES = 300_000

#: The role of a folder below which only files of `reload_include` matter. Other roles are those of
#: `poorhttp.targets`; the deepest folder with a role above a file decides.
INCLUDED = "included"

#: The roles of folders that targets name; of two for one folder the later one counts.
ROLES = (FILES, PROGRAMS, TEMPLATES, CODE)

#: A save starts a new generation: code, templates, and files that applications read at their start.
SOURCES = frozenset(
    [
        *("py", "so", "mo"),
        *("html", "htm", "jinja", "jinja2", "j2", "mako", "tmpl"),
        *("ini", "cfg", "toml", "yaml", "yml"),
    ]
)

#: Only browsers see these: a save reloads pages.
ASSETS = frozenset(
    [
        *("css", "js", "mjs", "map", "wasm"),
        *("svg", "png", "jpg", "jpeg", "gif", "webp", "avif", "ico", "bmp"),
        *("woff", "woff2", "ttf", "otf", "eot"),
        *("mp3", "mp4", "webm", "ogg", "pdf"),
    ]
)

#: Applications write these while they run: a save has no effect.
WRITTEN_BY_APPLICATIONS = frozenset(
    [
        *("json", "jsonl", "csv", "log", "lock", "pid", "sock", "pyc", "pyo"),
        *("db", "db-journal", "db-wal", "db-shm"),
        *("sqlite", "sqlite3", "sqlite3-journal", "sqlite3-wal", "sqlite3-shm"),
    ]
)

#: Folders without sources of the project. Hidden ones have none either.
EXCLUDED_NAMES = frozenset(
    [
        *("__pycache__", "__pypackages__", "node_modules", "bower_components"),
        *("site-packages", "dist-packages"),
    ]
)

#: Folders of the system that are skipped if the server is started in `/`.
SYSTEM_FOLDERS = ("/proc", "/sys", "/dev", "/run")

#: Entries that mark a folder as a virtual environment or a cache (https://bford.info/cachedir/).
EXCLUDING_ENTRIES = frozenset(("pyvenv.cfg", "conda-meta", "CACHEDIR.TAG"))

#: Where packages are installed.
_INSTALLED = ("/site-packages/", "/dist-packages/", "/__pypackages__/")

#: Endings of editors' temporary files.
_TEMPORARY = (
    *("~", ".swp", ".swo", ".swx", ".swpx", ".tmp", ".bak", ".orig", ".part"),
    *("___jb_tmp___", "___jb_old___", ".kate-swp", ".crswap"),
)


class WatchedProject:
    """The project that the development server watches: the user's own files.

    Attributes:
        roots: the folders to be watched, without those that a walk from another root reaches.
        files: single files that matter wherever they are.
        archives: archives on Python's path from which modules were imported.
        is_truncated: the last `walk` has left folders out because there are too many.
        folder_links: the symbolic links to folders that the last `walk` has met, with the kind of
            their change, and the device and inode of the folder.
    """

    def __init__(
        self,
        roots: Sequence[tuple[str, str]],
        *,
        files: Sequence[str] = (),
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        live: bool = True,
    ) -> None:
        """Take the values that `WatchedProject.of` has found.

        Args:
            roots: folders and their roles; the last one of a folder counts.
            files: the configuration file, and files with variables.
            include: globs of further files whose save starts a new generation.
            exclude: globs of files that are ignored.
            live: pages reload themselves. Otherwise files that only browsers see are ignored.
        """
        self._roles = {_absolute(path): role for path, role in roots}
        self.archives: set[str] = set()
        self.files = [_absolute(path) for path in files]
        self.is_truncated = False
        self.folder_links: dict[str, tuple[str, tuple[int, int] | None]] = {}
        self._include = [Glob(text) for text in include]
        self._exclude = [Glob(text) for text in exclude]
        self._live = live
        self.roots = [
            folder
            for folder, role in self._roles.items()
            if self._is_wanted(role) and not self._is_reached(folder)
        ]
        self._standard = _standard_library()
        self._in_environment: dict[str, bool] = {}

    @classmethod
    def of(cls, services: Sequence[Settings], file: str | None) -> WatchedProject:
        """Derive the project from settings, in the folder in which targets are loaded.

        Args:
            services: the settings of each service.
            file: the configuration file of `-c`, if there is one.
        """
        hosts = [host for service in services for host in service.hosts.values()]
        everything = [*services, *hosts]
        path = [folder for one in everything for folder in one.pythonpath]
        roots: list[tuple[str, str]] = []
        explicit: list[tuple[str, str]] = []
        written: list[str] = []
        for one in everything:
            explicit += [(folder, FILES) for _, folder in one.static]
            compiled = one.value("pages_modules")
            for place in (compiled, one.access_log, one.error_log, one.pidfile):
                # Files that the server itself writes must not reload it.
                if place and (os.sep in place or place == compiled):
                    written.append(_absolute(place))
        for target in targets_of(services):
            explicit += _folders_of(target, path)
        options = [one.of(Development) for one in everything]
        include = [_anchored(glob) for one in options for glob in one.reload_include]
        roots += [(_fixed_part(glob), INCLUDED) for glob in include if glob.startswith("/")]
        exclude = [_anchored(glob) for one in options for glob in one.reload_exclude]
        # `CODE` comes last and counts: a module beside CGI programs is loaded all the same.
        explicit.sort(key=lambda root: ROLES.index(root[1]))
        return cls(
            [*roots, (os.getcwd(), CODE), *((folder, CODE) for folder in path), *explicit],
            files=[*([file] if file else []), *services[0].variable_files],
            include=list(dict.fromkeys(include)),
            exclude=list(dict.fromkeys([*exclude, *written])),
            live=any(one.live for one in options),
        )

    def kind(self, path: str) -> str:
        """Return the kind of a change: a file was saved, has appeared or vanished.

        Returns:
            `code`: a new generation starts; `asset`: pages reload; `configuration`: settings are
            read again; `outside`: a library has changed, the fork server starts again; or empty.
        """
        if self._matches_any(self._exclude, path):
            return ""
        if path in self.files:
            return "configuration"
        if path in self.archives:
            return "code" if self.owns(path) else "outside"
        folder, name = os.path.split(path)
        if not self.owns(path):
            return "outside" if name.endswith((".py", ".so")) else ""
        root = self._root_of(folder)
        if not root:
            # In an editable install: other files there are not known to matter.
            return "code" if name.endswith((".py", ".so")) and not _is_temporary(name) else ""
        between = folder
        while between != root:
            if self.is_excluded(between):
                return ""
            between = os.path.dirname(between)
        return self.kind_in(self._roles[root], path)

    def kind_in(self, role: str, path: str) -> str:
        """Return the kind of a change in a folder with a role that `walk` yields."""
        name = os.path.basename(path)
        if _is_temporary(name) or self._matches_any(self._exclude, path):
            return ""
        if self._matches_any(self._include, path):
            return "code"
        asset = "asset" if self._live else ""
        if role == INCLUDED:
            return ""
        if role == FILES:
            return asset
        if name == ".env" or name.startswith(".env."):
            return "code"
        if name.startswith("."):
            return ""
        ending = name.rpartition(".")[2].lower() if "." in name else ""
        if role == PROGRAMS:
            # CGI programs are started for each request.
            return "" if ending in WRITTEN_BY_APPLICATIONS else asset
        if ending in ASSETS:
            return asset
        if ending in SOURCES or (role == TEMPLATES and ending not in WRITTEN_BY_APPLICATIONS):
            return "code"
        return ""

    def owns(self, file: str | None) -> bool:
        """Whether a module of this file is the user's own.

        Not if it is of Python, of this server, or installed, unless by an editable install.
        """
        if not file or file.startswith("<"):
            return False
        path = os.path.abspath(file)
        if path.startswith((*self._standard, SERVER_FOLDER)) or any(
            place in path for place in _INSTALLED
        ):
            return False
        folder = os.path.dirname(path)
        root = self._root_of(folder)
        return not root or not self._is_in_environment(folder, root)

    def is_of_python(self, path: str) -> bool:
        """Whether a file belongs to the standard library."""
        return path.startswith(self._standard) and not any(place in path for place in _INSTALLED)

    def walk(self) -> Iterator[tuple[str, str, list[os.DirEntry[str]]]]:
        """Walk through the folders that matter, each once, breadth first.

        Returns:
            Each folder, its role, and its entries except folders.
        """
        self.is_truncated = False
        self.folder_links = {}
        by_number = {}
        for folder, role in self._roles.items():
            number = inode_of(folder)
            if number is not None:
                by_number[number] = role
        seen: set[tuple[int, int]] = set()
        found = 0
        level = [(root, self._roles[root]) for root in self.roots]
        # Symbolic links may lead anywhere: they are followed last.
        linked: list[tuple[str, str]] = []
        while level or linked:
            if not level:
                level, linked = linked, []
            below: list[tuple[str, str]] = []
            for folder, inherited in level:
                number = inode_of(folder)
                if number is None or number in seen:
                    continue
                if len(seen) >= FOLDERS or found >= ENTRIES:
                    self.is_truncated = True
                    return
                seen.add(number)
                role = by_number.get(number, inherited)
                if not self._is_wanted(role):
                    continue
                entries, folders, complete = _entries(folder, ENTRIES - found)
                found += len(entries) + len(folders)
                self.is_truncated = self.is_truncated or not complete
                if folder not in self._roles and any(
                    entry.name in EXCLUDING_ENTRIES for entry in (*entries, *folders)
                ):
                    continue
                yield folder, role, entries
                for entry in folders:
                    if self.is_excluded(entry.path):
                        continue
                    if not entry.is_symlink():
                        below.append((entry.path, role))
                        continue
                    linked.append((entry.path, role))
                    if role != INCLUDED:
                        kind = "code" if role in (CODE, TEMPLATES) else "asset"
                        self.folder_links[entry.path] = kind, inode_of(entry.path)
            level = below

    def folders(self) -> list[str]:
        """Return the folders to be watched."""
        return [folder for folder, _, _ in self.walk()]

    def is_excluded(self, folder: str) -> bool:
        """Whether a folder below a root is left out because of its name."""
        return folder not in self._roles and self._has_excluded_name(folder)

    def _is_wanted(self, role: str) -> bool:
        return self._live or role not in (FILES, PROGRAMS)

    def _is_reached(self, folder: str) -> bool:
        """Whether a walk from another root reaches a folder; one below `.hidden` it does not."""
        while len(folder) > 1:
            if self._has_excluded_name(folder):
                return False
            folder = os.path.dirname(folder)
            if folder in self._roles:
                return self._is_wanted(self._roles[folder])
        return False

    def _has_excluded_name(self, folder: str) -> bool:
        name = os.path.basename(folder)
        return (
            name.startswith(".")
            or name in EXCLUDED_NAMES
            or name.endswith((".egg-info", ".dist-info"))
            or folder == SERVER_FOLDER[:-1]
            or folder in SYSTEM_FOLDERS
            or self._matches_any(self._exclude, folder)
        )

    def _matches_any(self, globs: Sequence[Glob], path: str) -> bool:
        for glob in globs:
            if glob.absolute:
                if glob.matches(path):
                    return True
                continue
            for root in self._roles:
                if path.startswith(f"{root.rstrip('/')}/") and glob.matches(path[len(root) :]):
                    return True
        return False

    def _root_of(self, folder: str) -> str:
        """Return this folder or the nearest one above it that has a role; or empty."""
        while folder not in self._roles:
            parent = os.path.dirname(folder)
            if parent == folder:
                return ""
            folder = parent
        return folder

    def _is_in_environment(self, folder: str, root: str) -> bool:
        """Whether a folder below a root belongs to a virtual environment there."""
        if folder == root:
            return False
        known = self._in_environment.get(folder)
        if known is None:
            known = os.path.exists(os.path.join(folder, "pyvenv.cfg")) or (
                self._is_in_environment(os.path.dirname(folder), root)
            )
            self._in_environment[folder] = known
        return known


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


def _anchored(glob: str) -> str:
    """Return a glob that leads out of the project as one for absolute paths."""
    return _absolute(glob) if glob.startswith(("../", "~/")) else glob


def _fixed_part(glob: str) -> str:
    """Return the folder below which an absolute glob can match."""
    parts = glob.split("/")[:-1]
    plain = next((i for i, part in enumerate(parts) if set(part) & set("*?[")), len(parts))
    return "/".join(parts[:plain]) or "/"


def _standard_library() -> tuple[str, ...]:
    """Return the folders of the standard library, by all their names."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    folders = {
        os.path.dirname(os.__file__),
        *(
            os.path.join(prefix, library, version)
            for prefix in (sys.base_prefix, sys.base_exec_prefix)
            for library in ("lib", sys.platlibdir)
        ),
    }
    folders |= {os.path.realpath(folder) for folder in folders}
    return tuple(folder + "/" for folder in folders)


def _folders_of(target: str, path: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Find the folders of a target, and their roles."""
    kind, place = named(target)
    if kind == FILE:
        yield _package(_absolute(place)), CODE
    elif kind == MODULE:
        rest = target.partition(":")[2]
        if rest and os.path.exists(rest):
            # A plug-in's scheme that names a file or folder.
            yield (
                (_absolute(rest) if os.path.isdir(rest) else os.path.dirname(_absolute(rest))),
                CODE,
            )
        folder = _installed(place.partition(".")[0], path)
        if folder:
            yield folder, CODE
    elif kind == CONFIGURATION:
        yield os.path.dirname(_absolute(place)), CODE
    elif place and kind in ROLES:
        folder = _absolute(place)
        yield (os.path.dirname(folder) if folder.endswith(".py") else folder), kind
    elif os.path.exists(place):
        # Of a kind that is not known here; what it names may be no path at all.
        folder = _absolute(place)
        yield (folder if os.path.isdir(folder) else os.path.dirname(folder)), CODE


def _package(file: str) -> str:
    """Return the folder of a file, or of the package that it belongs to."""
    folder = os.path.dirname(file)
    while len(folder) > 1 and os.path.isfile(os.path.join(os.path.dirname(folder), "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


def package_of(file: str) -> str:
    """Return the folder of the outermost package that a module belongs to; without one its file."""
    folder = os.path.dirname(file)
    return _package(file) if os.path.isfile(os.path.join(folder, "__init__.py")) else file


def _installed(name: str, path: Sequence[str]) -> str:
    """Return the folder of an editable package that is neither here nor in `pythonpath`; or empty.

    It must be watched even if its import fails, after which no loaded module shows its folder.
    """
    for folder in (".", *path):
        if os.path.exists(os.path.join(folder, name)):
            return ""
        if os.path.exists(os.path.join(folder, name + ".py")):
            return ""
    from importlib.util import find_spec

    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return ""
    if spec is None or not spec.submodule_search_locations:
        return ""
    folder = os.path.abspath(next(iter(spec.submodule_search_locations)))
    foreign = (*_standard_library(), SERVER_FOLDER)
    if folder.startswith(foreign) or any(place in folder for place in _INSTALLED):
        return ""
    return folder


def inode_of(folder: str) -> tuple[int, int] | None:
    """Return the device and inode of a folder; `None` if it does not exist."""
    try:
        status = os.stat(folder)
    except OSError:
        return None
    # The "folder" of a module in a zip archive is a file.
    return (status.st_dev, status.st_ino) if S_ISDIR(status.st_mode) else None


def _entries(
    folder: str, limit: int
) -> tuple[list[os.DirEntry[str]], list[os.DirEntry[str]], bool]:
    """Return at most `limit` files and folders of a folder, and whether these are all."""
    files: list[os.DirEntry[str]] = []
    folders: list[os.DirEntry[str]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if len(files) + len(folders) >= limit:
                    return files, folders, False
                (folders if _is_folder(entry) else files).append(entry)
    except OSError:
        # Unreadable, or gone meanwhile: modules cannot be imported from it either.
        pass
    return files, folders, True


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_temporary(name: str) -> bool:
    """Whether a file is an editor's temporary file."""
    return (
        name.startswith((".#", "._", "#", "~", "flycheck_", ".goutputstream-"))
        or name.endswith(_TEMPORARY)
        or name == "4913"
        or ".tmp." in name
        or "_flymake." in name
    )
