"""Keeps in memory the modules that are imported later, in case pip replaces their files.

Most modules are imported where they are first needed, to keep processes small: for a timeout, an
exception, a question of `poorhttp ctl`. By then a new version of the package may have replaced the
files, and a module of another version would not fit. So their bytecode is copied into a sealed file
in memory before the first fork, and imported from there by all processes.
"""

from __future__ import annotations

import errno
import fcntl
import marshal
import os
import sys
from collections.abc import Iterator, Sequence

from poorhttp.config.options.hooks import IN_OWN_PROCESS
from poorhttp.config.registry import UNASKED, UPGRADER, registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.abc import SourceLoader
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType

    from poorhttp.config.settings import Settings
else:
    from _frozen_importlib import ModuleSpec
    from _frozen_importlib_external import SourceLoader

#: The folder of the package.
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

#: Folders and modules that are not needed while the server serves. Of plug-ins, needed is
#: what their hooks name, and all of those that load applications, or handle logs or connections.
_NOT_NEEDED = (*("plugins", "config/other_servers", "config/help.py"), *("__main__.py", "api.py"))

#: Those that are needed only with an option.
_BY_OPTION = {
    "supervisor/hooks": IN_OWN_PROCESS,
    "worker/hooks": (*IN_OWN_PROCESS, "hook_worker_start", "after_fork"),
}

#: Files besides modules.
_DATA = (".css", ".js", ".svg")

#: More bytes than any file has.
_LARGEST = 1 << 18

#: Bytes of the header of a file with bytecode (PEP 552).
_HEADER = 16


class OwnFiles(SourceLoader):
    """Finds and loads the modules in the copy; one object for all of them (PEP 302, PEP 451)."""

    _fd = -1
    _version: object = None  # what the package was at the start

    def __init__(self) -> None:
        #: Offset and length by path, and whether it is the bytecode of a module.
        self._places: dict[str, tuple[int, int, bool]] = {}

    def copy(self, services: Sequence[Settings], modules: Sequence[str] = ()) -> None:
        """Copy the files that these settings may need, before the first fork.

        `modules`: those of plug-ins, as names below `poorhttp`.
        """
        if self._fd >= 0:
            return
        self._version = _state()
        try:
            self._copy(services, modules)
        except OSError:
            # A sandbox may forbid it, and a package in an archive has no files: as they are then.
            self._places.clear()

    def _copy(self, services: Sequence[Settings], modules: Sequence[str]) -> None:
        # Nobody can change it later: the main process may be root, which imports from it as well.
        fd = self._fd = os.memfd_create("poorhttp", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        contents, offset = [], 0
        for path in _files(services, modules):
            content, is_bytecode = _read(path)
            contents.append(content)
            self._places[path] = offset, len(content), is_bytecode
            offset += len(content)
        if os.write(fd, b"".join(contents)) != offset:
            raise OSError(errno.EFBIG, "a limit of the size of files (RLIMIT_FSIZE) forbids it")
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
        sys.meta_path.insert(0, self)

    @property
    def change(self) -> str:
        """What has happened to the package since the start, in words; empty: nothing."""
        now = _state()
        if self._version is None or now == self._version:
            return ""
        return "have been removed" if now is None else "have been replaced"

    def get_data(self, path: str) -> bytes:
        if path not in self._places:
            return _content(path)
        offset, length, _ = self._places[path]
        return os.pread(self._fd, length, offset)

    # Called by the import system

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how a module of the server is loaded."""
        if not name.startswith("poorhttp."):
            return None
        for folder in _folders():
            base = os.path.join(folder, *name.split(".")[1:])
            for file, is_package in ((f"{base}/__init__.py", True), (f"{base}.py", False)):
                if file in self._places:
                    spec = ModuleSpec(name, self, origin=file, is_package=is_package)
                    if is_package:
                        spec.submodule_search_locations = [base]
                    spec.has_location = True
                    return spec
        return None

    def get_source(self, fullname: str) -> None:
        """There is no source: tracebacks ask for it when the files are gone."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        content = self.get_data(path)
        if self._places[path][2]:
            code: CodeType = marshal.loads(content[_HEADER:])
            return code
        return self.source_to_code(content, path)

    def get_filename(self, fullname: str) -> str:
        spec = self.find_spec(fullname)
        if spec is None or spec.origin is None:
            raise ImportError(f"{fullname} is no module of the server", name=fullname)
        return spec.origin


_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE

#: The copy of this process, which those that are forked from it share.
own_files = OwnFiles()


def _folders() -> list[str]:
    """Return the folders of the package: its own, and that of former names of modules."""
    return list(sys.modules["poorhttp"].__path__)


def _files(services: Sequence[Settings], modules: Sequence[str]) -> Iterator[str]:
    """Yield the paths of modules that are not imported yet, and of other files."""
    sinks = registry.entries["log_sinks"].values()
    used = [each for each in sinks if any(some.is_enabled(each.name) for some in services)]
    used += [*registry.entries["targets"].values(), registry.entries["worker_hooks"][UPGRADER]]
    places = [each.place.split(".") for each in used]
    loading = {"/".join(place[1:3]) for place in places if place[:2] == ["poorhttp", "plugins"]}
    later = [*modules, *(name for names in UNASKED.values() for name in names)]
    named = (*loading, *(name.replace(".", "/") for name in later))
    folders = [*_folders(), *(f"{FOLDER}/{each}" for each in named)]
    yield from (f"{path}.py" for path in folders if os.path.isfile(f"{path}.py"))
    imported = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    left_out = {f"{FOLDER}/{folder}" for folder in _NOT_NEEDED}
    for folder, options in _BY_OPTION.items():
        if not any(each.is_enabled(option) for each in services for option in options):
            left_out.add(f"{FOLDER}/{folder}")
    folders = list(filter(os.path.isdir, dict.fromkeys(folders)))
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                path = f"{folder}/{entry.name}"
                if path in left_out:
                    continue
                if path.endswith((".py", *_DATA)):
                    if path not in imported:
                        yield path
                elif entry.name != "__pycache__" and path not in folders and entry.is_dir():
                    folders.append(path)


def _read(path: str) -> tuple[bytes, bool]:
    """Return the bytecode of a module, if it is up to date, or else the file."""
    folder, name = os.path.split(path)
    tag = sys.implementation.cache_tag
    if name.endswith(".py") and tag and sys.pycache_prefix is None and not sys.flags.optimize:
        try:
            content = _content(f"{folder}/__pycache__/{name[:-3]}.{tag}.pyc")
            state = os.stat(path)
            # Flags 0: the header has time and size of the source.
            numbers = (0, int(state.st_mtime), state.st_size)
            stamp = b"".join((each & 0xFFFF_FFFF).to_bytes(4, "little") for each in numbers)
            if content[4:_HEADER] == stamp:
                return content, True
        except OSError:
            pass
    return _content(path), False


def _content(path: str) -> bytes:
    """Return the content of a file, with few system calls."""
    with open(path, "rb", buffering=0) as file:
        content = file.read(_LARGEST)
    if len(content) == _LARGEST:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return content


def _state() -> object:
    """Return what changes when the package is replaced; None: it is not there."""
    try:
        state = os.stat(f"{FOLDER}/__init__.py")
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns, state.st_size
