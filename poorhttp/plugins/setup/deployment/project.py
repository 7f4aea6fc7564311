"""Finds which libraries a project imports, and which packages it needs, without running it."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator

from poorhttp.config.ini import read_file

#: Folders that are not the application.
SKIPPED = {
    *("build", "deploy", "dist", "doc", "docs", "migrations", "node_modules", "site-packages"),
    *("test", "tests", "venv", "__pycache__"),
}

#: At most this many files are read, each up to this size.
MAX_FILES = 2000
MAX_SIZE = 1 << 20


class DeployedProject:
    """The project for which `poorhttp init` writes files: what its source imports.

    Attributes:
        imports: the dotted names of imported modules, each with a file that imports it.
        modules: the names of its own modules and packages.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.imports: dict[str, str] = {}
        self.modules: set[str] = set()
        for number, path in enumerate(_files(folder)):
            if number == MAX_FILES:
                break
            self._read(path)

    def importing(self, libraries: set[str]) -> dict[str, str]:
        """Return which of these libraries are imported, each with a file that does so."""
        found: dict[str, str] = {}
        for name, file in self.imports.items():
            parts = name.split(".")
            for length in range(1, len(parts) + 1):
                library = ".".join(parts[:length])
                if library in libraries:
                    found.setdefault(library, file)
        return found

    def requirements(self) -> str:
        """Return the file that names the packages of the project; empty if there is none."""
        for name in ("requirements.txt", "pyproject.toml", "setup.py", "setup.cfg"):
            path = os.path.join(self.folder, name)
            if not os.path.isfile(path):
                continue
            if name == "pyproject.toml" and not _is_package(path):
                continue
            return name
        return ""

    def packages(self) -> list[str]:
        """Return the packages that it imports and that are installed here, `NAME==VERSION`."""
        from importlib.metadata import packages_distributions, version

        installed = packages_distributions()
        names = {name.partition(".")[0] for name in self.imports}
        names -= self.modules | set(sys.stdlib_module_names) | {"poorhttp"}
        needed = {each for name in names for each in installed.get(name, ())}
        return sorted((f"{name}=={version(name)}" for name in needed), key=str.lower)

    def _read(self, path: str) -> None:
        relative = os.path.relpath(path, self.folder)
        if not relative.isprintable():
            # It is named in comments and on terminals.
            relative = ascii(relative)[1:-1]
        self.modules.add(relative.split(os.sep)[0].removesuffix(".py"))
        try:
            if os.path.getsize(path) > MAX_SIZE:
                return
            tree = ast.parse(read_file(path, MAX_SIZE))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return  # the server reports it when it loads the application
        for node in ast.walk(tree):
            for name in _imported(node):
                self.imports.setdefault(name, relative)


def _files(folder: str) -> Iterator[str]:
    """Return the Python files of a project, those of outer folders first."""
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in SKIPPED
            and not name.startswith(".")
            and not os.path.exists(os.path.join(here, name, "pyvenv.cfg"))
        )
        for name in sorted(files):
            tests = name.startswith(("test_", "conftest")) or name.endswith("_test.py")
            if name.endswith(".py") and not tests and name not in ("setup.py", "noxfile.py"):
                yield os.path.join(here, name)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def _is_package(path: str) -> bool:
    """Tell whether a `pyproject.toml` describes a package, and not only settings of tools."""
    lines = read_file(path, MAX_SIZE).splitlines()
    return any(line.startswith((b"[project]", b"[build-system]")) for line in lines)
