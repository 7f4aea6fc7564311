"""Imports the module of an application, by name or by file, with helpful error messages."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType, TracebackType

from poorhttp.config.suggestions import nearest
from poorhttp.errors import ApplicationError, Stopped
from poorhttp.logs.source_errors import name_file
from poorhttp.process.privileges import closed_folder, user_name
from poorhttp.process.signals import signal

#: The ending of files of mod_wsgi, which are Python as well.
SCRIPT = ".wsgi"

#: The loader of files that targets name; None for Python's own.
file_loader: type[SourceFileLoader] | None = None


class ScriptLoader(SourceFileLoader):
    """Loads `shop.wsgi`, without a file in `__pycache__`: it would be that of `shop.py`."""

    def path_stats(self, path: str) -> Mapping[str, float]:
        """Raise OSError: there is nothing by which cached bytecode could be valid."""
        raise OSError(path)


def import_by_name(name: str) -> ModuleType:
    """Import `package.module`, the current directory first; an ApplicationError if that fails."""
    try:
        folder = os.getcwd()
    except OSError:
        raise ApplicationError(f"the folder to search for {name} was removed") from None
    # The empty entry is the current directory too.
    if "" not in sys.path:
        prepend_to_path(folder)
    try:
        return _imported(lambda: importlib.import_module(name), name)
    except ModuleNotFoundError as error:
        near = nearest(name, _modules(folder))
        hint = f'did you mean "{near}"?' if near else _permission_hint(folder)
        raise ApplicationError(
            f"there is no module {error.name or name}, in {folder} or elsewhere on Python's path"
            + (f"; {hint}" if hint else "")
        ) from error


def import_file(path: str) -> ModuleType:
    """Import a file; as part of its package, if it has one, so that relative imports work.

    Raises:
        ApplicationError: there is no such file, or it failed.
    """
    path = os.path.abspath(path)
    folder, file = os.path.split(path)
    if not os.path.isfile(path):
        raise ApplicationError(_permission_hint(path) or _missing_file_message(path))
    is_script = file.endswith(SCRIPT)
    # shop.wsgi may import shop.py, so it has a name of its own.
    stem = f"{file.removesuffix(SCRIPT)}_wsgi" if is_script else file.removesuffix(".py")

    root, names = package_of(path)
    prepend_to_path(root)
    name = ".".join(names)
    if not is_script and (len(names) > 1 or stem == "__init__"):
        module = _imported(lambda: importlib.import_module(name), path)
        if not _is_file(module, path):
            raise ApplicationError(
                f"{path} is the module {name}, and another one of this name is loaded already: "
                f"{module.__file__}"
            )
        return module

    loaded = _already_loaded(path)
    if loaded is not None:
        return loaded
    return _imported(lambda: _execute(_unused_name(stem, folder), path), path)


def package_of(path: str) -> tuple[str, list[str]]:
    """Return the folder from which a file is imported, and its packages with its own name."""
    folder, file = os.path.split(os.path.abspath(path))
    stem = file.removesuffix(".py")
    names = [] if stem == "__init__" else [stem]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        names.insert(0, package)
    return folder, names


def prepend_to_path(folder: str) -> None:
    """Put a folder in front of Python's path."""
    if folder not in sys.path:
        sys.path.insert(0, folder)


def describe(error: BaseException) -> str:
    """Return an exception on one line: its type, message and place."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "(its message cannot be made)"
    if isinstance(error, PermissionError):
        text = f"{text}, as user {user_name(os.geteuid())}"
    if isinstance(error, SyntaxError):
        text = f"{error.msg} ({error.filename}, line {error.lineno})"
        return f"{type(error).__name__}: {text}"
    if isinstance(error, SystemExit):
        text = f"sys.exit({error.code!r}) was called"
    place = _place(error.__traceback__)
    name = type(error).__name__
    return f"{name}: {text}{place}" if text else f"{name}{place}"


def _imported(load: Callable[[], ModuleType], what: str) -> ModuleType:
    try:
        return load()
    except Stopped:
        raise
    except BaseException as error:
        # Ctrl-C; in a worker it raises `Stopped`.
        is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if isinstance(error, KeyboardInterrupt) and is_default:
            raise
        # The module itself is missing, rather than one that it imports.
        if isinstance(error, ModuleNotFoundError) and f"{what}.".startswith(f"{error.name or ''}."):
            raise
        if type(error) is ApplicationError:
            raise
        name_file(error)
        raise ApplicationError(f"{what} cannot be imported: {describe(error)}") from error


def _execute(name: str, path: str) -> ModuleType:
    loader = {".py": file_loader, SCRIPT: ScriptLoader}.get(os.path.splitext(path)[1])
    own = loader(name, path) if loader is not None else None
    spec = spec_from_file_location(name, path, loader=own)
    if spec is None or spec.loader is None:
        raise ApplicationError(f"{path} is not a Python file: its name must end in .py or {SCRIPT}")
    module = module_from_spec(spec)
    # Before it runs: pickle, dataclasses and circular imports need it there.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _unused_name(stem: str, folder: str) -> str:
    """Return a module name for a file: its own name, unless another module has it.

    Two applications may both be called app.py, or have the name of a standard module.
    """
    name = stem
    if stem in sys.modules or stem in sys.stdlib_module_names:
        name = f"{os.path.basename(folder) or 'root'}_{stem}"
    number = 1
    free = name
    while free in sys.modules:
        number += 1
        free = f"{name}_{number}"
    return free


def _already_loaded(path: str) -> ModuleType | None:
    for module in list(sys.modules.values()):
        if _is_file(module, path) and module.__name__ != "__main__":
            return module
    return None


def _is_file(module: ModuleType, path: str) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and os.path.abspath(file) == path


def _missing_file_message(path: str) -> str:
    folder, file = os.path.split(path)
    if os.path.isdir(path):
        table = os.path.isfile(os.path.join(path, "dispatch_table.py"))
        hint = f"dispatch:{path}" if table else f"{path}/FILE.py:callable"
        return f"{path} is a folder, not a file; say {hint}"
    if not os.path.isdir(folder):
        parent, name = os.path.split(folder)
        near = nearest(name, os.listdir(parent)) if os.path.isdir(parent) else None
        message = f"there is no file {path}: there is no folder {folder}"
    else:
        near = nearest(file, [entry for entry in os.listdir(folder) if entry.endswith(".py")])
        message = f"there is no file {file} in {folder}"
    return message + (f'; did you mean "{near}"?' if near else "")


def _permission_hint(path: str) -> str:
    """Return a message if a folder on the path is not accessible, otherwise an empty text."""
    closed = closed_folder(path)
    if closed is None:
        return ""
    return f"{path} cannot be read: {closed} is closed to user {user_name(os.geteuid())}"


def _modules(folder: str) -> list[str]:
    if not os.access(folder, os.R_OK):
        return []
    return [
        entry.name.removesuffix(".py")
        for entry in os.scandir(folder)
        if entry.name.endswith(".py") or (entry.is_dir() and entry.name.isidentifier())
    ]


def _place(traceback: TracebackType | None) -> str:
    """Return the innermost line of the application in a traceback, else that of a library."""
    own = inner = None
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith("<") and not file.startswith(os.path.dirname(__file__)):
            inner = (file, traceback.tb_lineno)
            if not file.startswith((sys.prefix, sys.base_prefix)) and "site-packages" not in file:
                own = inner
        traceback = traceback.tb_next
    place = own or inner
    return f" ({place[0]}, line {place[1]})" if place else ""
