"""Finds out which of `module` and `wsgi-file` uWSGI serves, without running either.

uWSGI loads both, `module` first, and the first that has an application is served at `/`. A module
without one, such as a package of settings, is only a line in its log.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence

from poorhttp.errors import ConfigError
from poorhttp.plugins.setup.migrate.equivalents.plan import UNKNOWN_VARIABLE, Setting
from poorhttp.plugins.setup.migrate.source_files import SourceFiles

#: The name that uWSGI looks for.
CALLABLE = "application"

#: What may set names that the source does not show.
DYNAMIC = ("globals", "exec", "setattr", "vars", "__getattr__")


def note_module(
    settings: Sequence[Setting], folder: str, files: SourceFiles, named_in: str = ""
) -> None:
    """Note at `module` that it has no application, if there is a `wsgi-file` beside it.

    Args:
        settings: of uWSGI, in their order.
        folder: where it is started.
        files: reads the source.
        named_in: the file with these settings, if there is one.
    """
    module = _last(settings, "module", "wsgi")
    if module is None or _last(settings, "wsgi-file", "file", "python-file") is None:
        return
    name, _, attribute = module.one.partition(" #")[0].strip().removesuffix(".py").partition(":")
    called = _last(settings, "callable")
    wanted = attribute or (called.one if called is not None else CALLABLE)
    if UNKNOWN_VARIABLE.search(module.one) or not wanted.isidentifier():
        return
    for path in _paths(settings, folder, name):
        try:
            text = files.read(path, named_in)
        except ConfigError:
            continue
        if not _may_have(text, wanted):
            module.note = (
                f"uWSGI finds no {wanted} in {path}, and serves wsgi-file: so does this file."
            )
        return


def _last(settings: Sequence[Setting], *names: str) -> Setting | None:
    found = [each for each in settings if each.name in names and not each.note]
    return found[-1] if found else None


def _paths(settings: Sequence[Setting], folder: str, name: str) -> Iterator[str]:
    """Yield the files in which a module may be, as Python looks for it under uWSGI."""
    changed = _last(settings, "chdir")
    start = os.path.join(folder, changed.one) if changed is not None else folder
    paths = [each.one for each in settings if each.name in ("pythonpath", "python-path", "pp")]
    for each in dict.fromkeys([*(os.path.join(start, path) for path in paths), start, folder]):
        base = os.path.normpath(os.path.join(each, *name.split(".")))
        yield from (f"{base}.py", os.path.join(base, "__init__.py"))


def _may_have(text: str, name: str) -> bool:
    """Tell whether the source of a module sets a name at its top level, or may do so."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name:
            return True
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name in (name, "__getattr__"):
                return True
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = {(each.asname or each.name).partition(".")[0] for each in node.names}
            if names & {name, "*"}:
                return True
        elif isinstance(node, ast.Name) and node.id in DYNAMIC:
            return True
    return False
