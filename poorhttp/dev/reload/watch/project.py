"""What is the user's own, and what of it matters when it is saved."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

from poorhttp.dev.reload.watch.glob_pattern import Glob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.settings import Settings

#: How many folders are watched at most, and how many entries are looked at to find them. Above
#: that somebody has started the server in a home folder, or serves an archive.
FOLDERS = 10_000
ENTRIES = 300_000

# What a folder of the user's is for; the deepest one above a file decides.
CODE = "code"
PAGES = "pages"
PROGRAMS = "programs"
INCLUDED = "included"
FILES = "files"

#: A version of its own for each: code and templates, what an application reads when it begins.
SOURCES = frozenset(
    [
        *("py", "so", "mo"),
        *("html", "htm", "jinja", "jinja2", "j2", "mako", "tmpl"),
        *("ini", "cfg", "toml", "yaml", "yml"),
    ]
)

#: What only browsers see.
ASSETS = frozenset(
    [
        *("css", "js", "mjs", "map", "wasm"),
        *("svg", "png", "jpg", "jpeg", "gif", "webp", "avif", "ico", "bmp"),
        *("woff", "woff2", "ttf", "otf", "eot"),
        *("mp3", "mp4", "webm", "ogg", "pdf"),
    ]
)

#: What applications write while they run.
WRITTEN = frozenset(
    [
        *("json", "jsonl", "csv", "log", "lock", "pid", "sock", "pyc", "pyo"),
        *("db", "db-journal", "db-wal", "db-shm"),
        *("sqlite", "sqlite3", "sqlite3-journal", "sqlite3-wal", "sqlite3-shm"),
    ]
)

#: Folders without a source of the project's. Hidden ones have none either.
FOREIGN = frozenset(
    [
        *("__pycache__", "__pypackages__", "node_modules", "bower_components"),
        *("site-packages", "dist-packages"),
    ]
)

#: Folders of the system's, for one who starts in `/`.
SYSTEM = ("/proc", "/sys", "/dev", "/run")

#: What says that a folder is a virtual environment, or a cache (https://bford.info/cachedir/).
MARKS = frozenset(("pyvenv.cfg", "conda-meta", "CACHEDIR.TAG"))

#: Where packages are installed.
_INSTALLED = ("/site-packages/", "/dist-packages/", "/__pypackages__/")

#: How names end that editors give to files for themselves.
_TEMPORARY = (
    *("~", ".swp", ".swo", ".swx", ".swpx", ".tmp", ".bak", ".orig", ".part"),
    *("___jb_tmp___", "___jb_old___", ".kate-swp", ".crswap"),
)

_OURS = (
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    + "/"
)


class Project:
    """The user's own files: what they are when one is saved, and where they are.

    Attributes:
        roots: the folders that it is in, each once.
        files: single files that matter wherever they are.
        cut: the last `walk` has left folders out, because there are too many.
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
        """Take what `Project.of` has found out.

        Args:
            roots: folders, and what each is for. Of the same folder, the last word counts.
            files: the configuration.
            include: globs of what is watched beside the usual.
            exclude: globs of what is not watched.
            live: there are pages that reload themselves. Otherwise nobody cares for what only
                browsers see.
        """
        self._roles = {_whole(path): role for path, role in roots}
        self.files = [_whole(path) for path in files]
        self.cut = False
        self._include = [Glob(text) for text in include]
        self._exclude = [Glob(text) for text in exclude]
        self._live = live
        self.roots = [
            folder
            for folder, role in self._roles.items()
            if self._is_wanted(role) and not self._comes_to(folder)
        ]
        self._standard = _standard_library()
        self._foreign: dict[str, bool] = {}

    @classmethod
    def of(cls, services: Sequence[Settings], file: str | None) -> Project:
        """Find out from the settings, in the folder in which the targets are loaded.

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
            for target in (one.target, *(target for _, target in one.mount)):
                explicit += _folders_of(target, path)
            for place in (one.pages_modules, one.access_log, one.error_log, one.pidfile):
                # What the server itself writes there must not reload it.
                if place and (os.sep in place or place == one.pages_modules):
                    written.append(_whole(place))
        include = [_anchored(glob) for one in everything for glob in one.reload_include]
        roots += [(_beginning(glob), INCLUDED) for glob in include if glob.startswith("/")]
        exclude = [_anchored(glob) for one in everything for glob in one.reload_exclude]
        # Code has the last word: a module beside CGI programs is loaded all the same.
        explicit.sort(key=lambda root: (FILES, PROGRAMS, PAGES, CODE).index(root[1]))
        return cls(
            [*roots, (os.getcwd(), CODE), *((folder, CODE) for folder in path), *explicit],
            files=[file] if file else [],
            include=list(dict.fromkeys(include)),
            exclude=list(dict.fromkeys([*exclude, *written])),
            live=any(one.live for one in everything),
        )

    def kind(self, path: str) -> str:
        """Return what it means that a file was saved, has appeared or vanished.

        Returns:
            `code`: a new version; `asset`: pages that reload themselves; `configuration`: settings
            are read again; `outside`: what a version begins with is no longer true; empty: nothing.
        """
        if path in self.files:
            return "configuration"
        folder, name = os.path.split(path)
        if not self.owns(path):
            return "outside" if name.endswith((".py", ".so")) else ""
        root = self._root_of(folder)
        if not root:
            # Of an editable install: what else lies there is not known to matter.
            return "code" if name.endswith((".py", ".so")) and not _is_temporary(name) else ""
        between = folder
        while between != root:
            if self.is_foreign(between):
                return ""
            between = os.path.dirname(between)
        return self.kind_in(self.role(folder), path)

    def kind_in(self, role: str, path: str) -> str:
        """Return the same for a file of a folder that is walked, and what the folder is for."""
        name = os.path.basename(path)
        if _is_temporary(name) or self._means(self._exclude, path):
            return ""
        if self._means(self._include, path):
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
            # They are started anew for each request.
            return "" if ending in WRITTEN else asset
        if ending in ASSETS:
            return asset
        if ending in SOURCES or (role == PAGES and ending not in WRITTEN):
            return "code"
        return ""

    def role(self, folder: str) -> str:
        """Return what a folder below a root is for."""
        while folder not in self._roles and len(folder) > 1:
            folder = os.path.dirname(folder)
        return self._roles.get(folder, CODE)

    def owns(self, file: str | None) -> bool:
        """Tell whether a module of this file is the user's own.

        It is not if it belongs to Python, is installed, or is ours. An editable install's is.
        """
        if not file or file.startswith("<"):
            return False
        path = os.path.abspath(file)
        if path.startswith((*self._standard, _OURS)) or any(place in path for place in _INSTALLED):
            return False
        folder = os.path.dirname(path)
        root = self._root_of(folder)
        return not root or not self._is_in_environment(folder, root)

    def walk(self) -> Iterator[tuple[str, str, list[os.DirEntry[str]]]]:
        """Go through the folders that matter, near ones before deep ones, each once.

        Returns:
            Each folder, what it is for, and its entries but for folders.
        """
        self.cut = False
        by_number = {}
        for folder, role in self._roles.items():
            number = _number(folder)
            if number is not None:
                by_number[number] = role
        seen: set[tuple[int, int]] = set()
        found = 0
        level = [(root, self.role(root)) for root in self.roots]
        # Links may lead to anywhere: what is behind them comes last.
        linked: list[tuple[str, str]] = []
        while level or linked:
            if not level:
                level, linked = linked, []
            below: list[tuple[str, str]] = []
            for folder, inherited in level:
                number = _number(folder)
                if number is None or number in seen:
                    continue
                if len(seen) >= FOLDERS or found >= ENTRIES:
                    self.cut = True
                    return
                seen.add(number)
                role = by_number.get(number, inherited)
                if not self._is_wanted(role):
                    continue
                entries, folders, complete = _entries(folder, ENTRIES - found)
                found += len(entries) + len(folders)
                self.cut = self.cut or not complete
                if folder not in self._roles and _is_marked(entries, folders):
                    continue
                yield folder, role, entries
                for entry in folders:
                    if not self.is_foreign(entry.path):
                        (linked if entry.is_symlink() else below).append((entry.path, role))
            level = below

    def folders(self) -> list[str]:
        """Return the folders to be watched."""
        return [folder for folder, _, _ in self.walk()]

    def is_foreign(self, folder: str) -> bool:
        """Tell whether a folder below a root is left out, as far as its name says."""
        return folder not in self._roles and self._is_left_out(folder)

    def _is_wanted(self, role: str) -> bool:
        return self._live or role not in (FILES, PROGRAMS)

    def _comes_to(self, folder: str) -> bool:
        """Tell whether a walk from another root comes to a folder; not to `.hidden`, for one."""
        while len(folder) > 1:
            if self._is_left_out(folder):
                return False
            folder = os.path.dirname(folder)
            if folder in self._roles:
                return self._is_wanted(self._roles[folder])
        return False

    def _is_left_out(self, folder: str) -> bool:
        name = os.path.basename(folder)
        return (
            name.startswith(".")
            or name in FOREIGN
            or name.endswith((".egg-info", ".dist-info"))
            or folder == _OURS[:-1]
            or folder in SYSTEM
            or self._means(self._exclude, folder)
        )

    def _means(self, globs: Sequence[Glob], path: str) -> bool:
        for glob in globs:
            if glob.absolute:
                if glob.matches(path):
                    return True
                continue
            for root in self._roles:
                if _is_below(path, root) and glob.matches(path[len(root) :]):
                    return True
        return False

    def _root_of(self, folder: str) -> str:
        """Return the nearest folder above, or this one, that was named as the user's; or empty."""
        while folder not in self._roles:
            parent = os.path.dirname(folder)
            if parent == folder:
                return ""
            folder = parent
        return folder

    def _is_in_environment(self, folder: str, root: str) -> bool:
        """Tell whether a folder below a root belongs to a virtual environment in there."""
        if folder == root:
            return False
        known = self._foreign.get(folder)
        if known is None:
            known = os.path.exists(os.path.join(folder, "pyvenv.cfg")) or (
                self._is_in_environment(os.path.dirname(folder), root)
            )
            self._foreign[folder] = known
        return known


def _whole(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


def _anchored(glob: str) -> str:
    """Return a glob that leads out of the project as one for whole paths."""
    return _whole(glob) if glob.startswith(("../", "~/")) else glob


def _beginning(glob: str) -> str:
    """Return the folder below which a glob for whole paths can match."""
    parts = glob.split("/")[:-1]
    plain = next((i for i, part in enumerate(parts) if set(part) & set("*?[")), len(parts))
    return "/".join(parts[:plain]) or "/"


def _is_below(path: str, root: str) -> bool:
    return path.startswith(root if root == "/" else root + "/")


def _standard_library() -> tuple[str, ...]:
    """Return the folders of Python's own library, by each name that they have."""
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
    """Find the folders in which something to serve is, and what they are for."""
    from poorhttp.targets import SCHEMES

    scheme, colon, rest = target.partition(":")
    roles = {"static": FILES, "cgi": PROGRAMS, "pages": PAGES, "dispatch": CODE}
    if colon and scheme in roles and rest:
        folder = _whole(rest)
        yield (os.path.dirname(folder) if folder.endswith(".py") else folder), roles[scheme]
        return
    if colon and scheme in SCHEMES:
        target = rest
    place = target.rpartition(":")[0] or target
    if place.endswith(".py") or "/" in place or os.path.isfile(place):
        yield _package(_whole(place)), CODE
    elif place and all(part.isidentifier() for part in place.split(".")):
        if rest and os.path.exists(rest):
            # Somebody's scheme, which names what it reads.
            yield (_whole(rest) if os.path.isdir(rest) else os.path.dirname(_whole(rest))), CODE
        folder = _installed(place.partition(".")[0], path)
        if folder:
            yield folder, CODE


def _package(file: str) -> str:
    """Return the folder of a file, or of the package that it belongs to."""
    folder = os.path.dirname(file)
    while len(folder) > 1 and os.path.isfile(os.path.join(os.path.dirname(folder), "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


def _installed(name: str, path: Sequence[str]) -> str:
    """Return the folder of a package that is found neither here nor in `pythonpath`; or empty.

    It is somebody's own if it was installed to be edited. When it fails to be imported, nobody but
    us knows where it is.
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
    foreign = (*_standard_library(), _OURS)
    if folder.startswith(foreign) or any(place in folder for place in _INSTALLED):
        return ""
    return folder


def _number(folder: str) -> tuple[int, int] | None:
    """Return what tells a folder from all others, by whatever name; `None`: there is none."""
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return (status.st_dev, status.st_ino)


def _entries(
    folder: str, limit: int
) -> tuple[list[os.DirEntry[str]], list[os.DirEntry[str]], bool]:
    """Return the files and the folders of a folder, and whether that is all of them."""
    files: list[os.DirEntry[str]] = []
    folders: list[os.DirEntry[str]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if len(files) + len(folders) >= limit:
                    return files, folders, False
                (folders if _is_folder(entry) else files).append(entry)
    except OSError:
        # Closed to us, or gone meanwhile: then nobody can import from it either.
        pass
    return files, folders, True


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_marked(files: Sequence[os.DirEntry[str]], folders: Sequence[os.DirEntry[str]]) -> bool:
    return any(entry.name in MARKS for entry in files) or any(
        entry.name in MARKS for entry in folders
    )


def _is_temporary(name: str) -> bool:
    """Tell whether an editor has made a file for itself, and takes it away again."""
    return (
        name.startswith((".#", "._", "#", "~", "flycheck_", ".goutputstream-"))
        or name.endswith(_TEMPORARY)
        or name == "4913"
        or ".tmp." in name
        or "_flymake." in name
    )
