"""Finds the library modules that the project imports, by reading its source.

It follows import statements, except those in functions, from the files that targets name. Other
imports cannot be found by reading; generations report them.
"""

from __future__ import annotations

# Not `ast`, which imports much of the standard library: `_ast` has the nodes that `compile` makes.
import _ast
import os
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder

from poorhttp.plugins.dev.reload.preimport.discard_output import DiscardOutput
from poorhttp.plugins.dev.reload.preimport.project_imports import ProjectImports

#: Files that are read at most, in case the project's path covers unrelated folders.
FILES = 2000

DJANGO = "DJANGO_SETTINGS_MODULE"

#: Modules that Django imports of each application that its settings name.
_PARTS = ("apps", "models", "admin")


class ImportScan:
    """One scan of the project.

    Attributes:
        found: library modules, each with whether it certainly is a module: `from a import b` may
            mean a name in `a` that hides a module `a.b`.
    """

    def __init__(self, project_imports: ProjectImports) -> None:
        """Take the finder of modules."""
        self.found: dict[str, bool] = {}
        self._project_imports = project_imports
        self._specs: dict[str, ModuleSpec | None] = {}
        self._files: dict[str, tuple[str, bool]] = {}
        self._settings: set[str] = set()

    def steps(self) -> Iterator[None]:
        """Read a file a step."""
        for file in self._project_imports.files:
            name, package = self._project_imports.name_of(file)
            self._files.setdefault(file, (name, package))
        for name in self._project_imports.modules:
            self._follow(name)
        settings = os.environ.get(DJANGO, "")
        if settings:
            self._follow_settings(settings)
        done = 0
        while done < min(len(self._files), FILES):
            for file in list(self._files)[done:FILES]:
                done += 1
                self._read(file)
                yield

    def _read(self, file: str) -> None:
        name, package = self._files[file]
        try:
            with open(file, "rb") as stream:
                source = stream.read()
            # Without warnings: the generation that compiles the file prints them.
            with DiscardOutput():
                tree = compile(source, file, "exec", _ast.PyCF_ONLY_AST, dont_inherit=True)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            # Without errors for the same reason.
            return
        assert isinstance(tree, _ast.Module)
        base = name if package else name.rpartition(".")[0]
        self._statements(tree.body, base)
        if name in self._settings:
            for text in _texts(tree):
                self._follow_text(text)
        else:
            for settings in _settings_named(tree):
                self._follow_settings(settings)

    def _statements(self, nodes: list[_ast.stmt], base: str) -> None:
        """Follow the imports that are executed when a module of a package `base` is imported."""
        for node in nodes:
            if isinstance(node, _ast.Import):
                for alias in node.names:
                    self._follow(alias.name)
            elif isinstance(node, _ast.ImportFrom):
                module = _absolute(node, base)
                self._follow(module)
                for alias in node.names:
                    if alias.name != "*":
                        self._follow(f"{module}.{alias.name}", certain=False)
            elif isinstance(node, _ast.If):
                if not _is_never(node.test):
                    self._statements(node.body, base)
                self._statements(node.orelse, base)
            elif not isinstance(node, (_ast.FunctionDef, _ast.AsyncFunctionDef)):
                for part in ("body", "orelse", "finalbody"):
                    self._statements(getattr(node, part, []), base)
                for handler in getattr(node, "handlers", []):
                    self._statements(handler.body, base)

    def _follow(self, name: str, certain: bool = True) -> bool:
        """Note a module and the packages that it is in; return whether it exists."""
        parts = name.split(".")
        for number in range(1, len(parts) + 1):
            prefix = ".".join(parts[:number])
            spec = self._find(prefix)
            if spec is None:
                return False
            if spec.has_location and not self._project_imports.is_own(spec):
                if number == len(parts):
                    self.found[name] = self.found.get(name, False) or certain
            elif spec.has_location and spec.origin and spec.origin.endswith(".py"):
                package = spec.submodule_search_locations is not None
                self._files.setdefault(spec.origin, (prefix, package))
            elif spec.origin in {"built-in", "frozen"} and number == len(parts):
                self.found[name] = True
        return True

    def _follow_settings(self, name: str) -> None:
        """Follow the settings module of Django."""
        self._settings.add(name)
        self._follow(name)

    def _follow_text(self, text: str) -> None:
        """Follow a text in the settings of Django that names a module or something in one."""
        parts = text.split(".")
        if not all(part.isidentifier() for part in parts):
            return
        if len(parts) == 1 and text in sys.stdlib_module_names:
            # A common word may be the name of one, and some have surprising effects when imported.
            return
        if self._follow(text):
            for part in _PARTS:
                self._follow(f"{text}.{part}", certain=False)
            # A database setting names the package of this module.
            self._follow(f"{text}.base", certain=False)
        elif len(parts) > 1:
            self._follow(text.rpartition(".")[0])

    def _find(self, name: str) -> ModuleSpec | None:
        if name not in self._specs:
            self._specs[name] = self._looked_for(name)
        return self._specs[name]

    def _looked_for(self, name: str) -> ModuleSpec | None:
        package = name.rpartition(".")[0]
        try:
            if not package:
                return self._project_imports.find(name)
            spec = self._find(package)
            if spec is None or spec.submodule_search_locations is None:
                return None
            return PathFinder.find_spec(name, list(spec.submodule_search_locations))
        except Exception:
            # A finder may need a package that is not imported here. That of archives compiles the
            # module, whose source may be wrong.
            return None


def _absolute(node: _ast.ImportFrom, base: str) -> str:
    """Return the absolute name of the module that names are imported from."""
    module = node.module or ""
    if not node.level:
        return module
    parts = base.split(".")
    above = ".".join(parts[: len(parts) - node.level + 1])
    return f"{above}.{module}".strip(".")


def _is_never(test: _ast.expr) -> bool:
    """Whether a condition is for type checkers, or for a run of the file as a program."""
    if isinstance(test, _ast.Compare):
        test = test.left
    name = getattr(test, "id", None) or getattr(test, "attr", None)
    return name in {"TYPE_CHECKING", "__name__"}


def _nodes(node: _ast.AST) -> Iterator[_ast.AST]:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        for field in node._fields:
            value = getattr(node, field, None)
            for item in value if isinstance(value, list) else (value,):
                if isinstance(item, _ast.AST):
                    waiting.append(item)


def _texts(tree: _ast.AST) -> Iterator[str]:
    for node in _nodes(tree):
        if isinstance(node, _ast.Constant) and isinstance(node.value, str):
            yield node.value


def _settings_named(tree: _ast.AST) -> Iterator[str]:
    """Yield settings modules that a file sets: `os.environ.setdefault(DJANGO, "shop.settings")`."""
    for node in _nodes(tree):
        if isinstance(node, _ast.Call):
            texts = [getattr(argument, "value", None) for argument in node.args]
            if len(texts) > 1 and texts[0] == DJANGO and isinstance(texts[1], str):
                yield texts[1]
        elif isinstance(node, _ast.Assign) and isinstance(node.targets[0], _ast.Subscript):
            key = getattr(node.targets[0].slice, "value", None)
            value = getattr(node.value, "value", None)
            if key == DJANGO and isinstance(value, str):
                yield value
