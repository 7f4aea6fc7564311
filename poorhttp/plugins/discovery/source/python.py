"""Reads the names that a Python file defines or imports, without running it."""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence

from poorhttp.config.ini import read_file

#: Larger files are probably generated, and not read.
MAX_SIZE = 1 << 20

#: Longest chain of imports that is followed.
MAX_DEPTH = 6

#: Folders in which modules of a project are searched.
ROOTS = (".", "src")


class Source:
    """A file that was read.

    Attributes:
        file: its path as it was passed in.
        error: why it cannot be read; empty if it can.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.error = ""
        self.values: dict[str, ast.expr] = {}
        self.functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        #: Imported names: number of dots, module, and name in it (empty: the module itself).
        self.imports: dict[str, tuple[int, str, str]] = {}
        #: Star imports: number of dots, and module.
        self.stars: list[tuple[int, str]] = []
        self.tree = ast.Module([], [])
        try:
            if os.path.getsize(file) > MAX_SIZE:
                self.error = "too large to be looked at"
                return
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.tree = ast.parse(read_file(file, MAX_SIZE), file)
        except SyntaxError as error:
            self.error = f"{error.msg} in line {error.lineno}" if error.lineno else error.msg
        except (OSError, ValueError, RecursionError, MemoryError) as error:
            self.error = str(error) or type(error).__name__
        for statement in self.statements():
            self._take(statement)

    def _take(self, statement: ast.stmt) -> None:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.functions[statement.name] = statement
        elif isinstance(statement, ast.ClassDef):
            self.classes[statement.name] = statement
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    self.values[target.id] = statement.value
        elif isinstance(statement, ast.AnnAssign):
            if isinstance(statement.target, ast.Name) and statement.value is not None:
                self.values[statement.target.id] = statement.value
        elif isinstance(statement, ast.ImportFrom):
            for name in statement.names:
                if name.name == "*":
                    self.stars.append((statement.level, statement.module or ""))
                else:
                    origin = (statement.level, statement.module or "", name.name)
                    self.imports[name.asname or name.name] = origin
        elif isinstance(statement, ast.Import):
            for name in statement.names:
                bound = name.asname or name.name.partition(".")[0]
                self.imports[bound] = (0, name.name if name.asname else bound, "")

    def statements(self) -> Iterator[ast.stmt]:
        """Yield the statements that run when the file is imported, in their order."""
        return _statements(self.tree.body)

    def has(self, name: str) -> bool:
        """Tell whether the file defines or imports a name."""
        kinds = (self.values, self.functions, self.classes, self.imports)
        return any(name in known for known in kinds)

    def texts(self) -> Iterator[str]:
        """Yield all string literals."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value

    def text(self, name: str) -> str | None:
        """Return the string literal that is assigned to a name, or None."""
        value = self.values.get(name)
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value.value
        return None


class Sources:
    """The files of a project, each read once."""

    def __init__(self, roots: Sequence[str] = ROOTS) -> None:
        self.roots = [root for root in roots if os.path.isdir(root)]
        self._read: dict[str, Source] = {}

    def read(self, file: str) -> Source:
        """Return a file, which is read once."""
        file = os.path.normpath(file)
        if file not in self._read:
            self._read[file] = Source(file)
        return self._read[file]

    def find(self, module: str) -> tuple[str, str]:
        """Return the file of a module (of a package `__init__.py`) and its root folder.

        Both are empty if the module does not belong to the project.
        """
        parts = module.split(".")
        if not all(parts):
            return "", ""
        for root in self.roots:
            file = file_of(os.path.join(root, *parts))
            if file:
                return os.path.normpath(file), root
        return "", ""

    def imported(self, source: Source, dots: int, module: str) -> str:
        """Return the file of an imported module; empty if it does not belong to the project."""
        if dots == 0:
            return self.find(module)[0]
        folder = os.path.dirname(source.file)
        for _ in range(dots - 1):
            folder = os.path.join(folder, "..")
        return file_of(os.path.join(folder, *filter(None, module.split("."))))

    def origin(self, source: Source, name: str, depth: int = MAX_DEPTH) -> tuple[Source, str]:
        """Return the file and name of a definition, following imports and assignments."""
        if depth == 0:
            return source, name
        value = source.values.get(name)
        if isinstance(value, ast.Name) and value.id != name:
            return self.origin(source, value.id, depth - 1)
        if name in source.imports and value is None and name not in source.functions:
            dots, module, what = source.imports[name]
            file = self.imported(source, dots, module)
            if file and what:
                return self.origin(self.read(file), what, depth - 1)
        if not source.has(name):
            for star in source.stars:
                file = self.imported(source, *star)
                if file and self.read(file).has(name):
                    return self.origin(self.read(file), name, depth - 1)
        return source, name

    def definition(self, source: Source, called: ast.expr) -> tuple[Source, str]:
        """Return the file and name of what `create_app` or `lib.create_app` means in a file.

        The name is empty if it is neither, or does not belong to the project.
        """
        if isinstance(called, ast.Name):
            return self.origin(source, called.id)
        if isinstance(called, ast.Attribute):
            file = self._module_file(source, called.value)
            if file:
                return self.origin(self.read(file), called.attr)
        return source, ""

    def _module_file(self, source: Source, dotted: ast.expr) -> str:
        """Return the file of the module that an expression means; empty if it is none."""
        names: list[str] = []
        while isinstance(dotted, ast.Attribute):
            names.insert(0, dotted.attr)
            dotted = dotted.value
        if not isinstance(dotted, ast.Name) or dotted.id not in source.imports:
            return ""
        dots, module, what = source.imports[dotted.id]
        return self.imported(source, dots, ".".join(filter(None, [module, what, *names])))

    def all_of(self, source: Source) -> list[Source]:
        """Return a file and those that it imports with a star, in order of precedence."""
        found: list[Source] = []
        coming = [source]
        while coming:
            source = coming.pop()
            if source not in found:
                found.append(source)
                files = [self.imported(source, *star) for star in source.stars]
                coming += [self.read(file) for file in files if file]
        return found


def file_of(place: str) -> str:
    """Return the file of a module or package by its path without a suffix; empty if none exists."""
    for file in (os.path.join(place, "__init__.py"), f"{place}.py"):
        if os.path.isfile(file):
            return file
    return ""


def last_name(function: ast.expr) -> str:
    """Return the last part of a dotted name."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when a module is imported, in their order."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            if "__main__" not in ast.dump(statement.test):
                yield from _statements(statement.body)
            yield from _statements(statement.orelse)
        elif isinstance(statement, ast.Try):
            yield from _statements(statement.body)
            for handler in statement.handlers:
                yield from _statements(handler.body)
            yield from _statements(statement.orelse)
            yield from _statements(statement.finalbody)
        elif isinstance(statement, ast.With):
            yield from _statements(statement.body)
