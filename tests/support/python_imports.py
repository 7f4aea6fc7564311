"""Which Python module depends on which: by imports of every kind, strings, patched classes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

#: A string that may name a module, or begin the name of one: `poorhttp.targets.` of an f-string.
DOTTED = re.compile(r"(\w+(?:\.\w+)+)(\.|:[\w.]+)?")

#: Groups of entry points. Two of them are called as packages, and do not stand for these.
GROUPS = ("poorhttp.targets", "poorhttp.modes")


def modules(folder: Path) -> dict[str, Path]:
    """The modules of a package, by their dotted names."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        names = path.relative_to(folder.parent).with_suffix("").parts
        found[".".join(names[:-1] if names[-1] == "__init__" else names)] = path
    return found


def python_graph(*folders: Path) -> dict[str, set[str]]:
    """Which module of packages depends on which; an extension, `_core`, is one, with its stub.

    Counted are imports anywhere in a file, also in functions and under `TYPE_CHECKING`; modules
    reached as attributes of an imported package; modules that a string names; and the module of a
    class that depends on whoever replaces its attributes. A package is imported with each of its
    modules; that is not counted, only what it is asked for.
    """
    known = {name: path for folder in folders for name, path in modules(folder).items()}
    known.update({f"{folder.name}._core": folder / "_core.pyi" for folder in folders})
    for folder in folders:
        for path in folder.glob("plugins/*/_[a-z]*.pyi"):
            known[".".join(path.relative_to(folder.parent).with_suffix("").parts)] = path
    graph: dict[str, set[str]] = {name: set() for name in known}
    for name, path in known.items():
        nodes = walk(path.read_text(encoding="utf-8") if path.exists() else "")
        imports = list(imported(name, path.name == "__init__.py", nodes))
        names = dict(imports)
        for what in (*(what for _, what in imports), *attributes(names, nodes)):
            graph[name] |= nearest(what, graph)
        for what in patched(names, nodes):
            for owner in nearest(what, graph):
                graph[owner].add(name)
        graph[name] = (graph[name] | named(nodes, graph)) - {name}
    return graph


def walk(source: str) -> list[ast.AST]:
    """All nodes of a module, as `ast.walk` has them, in a third of the time."""
    found: list[ast.AST] = [ast.parse(source)]
    for node in found:
        for value in vars(node).values():
            if isinstance(value, ast.AST):
                found.append(value)
            elif isinstance(value, list):
                found += [each for each in value if isinstance(each, ast.AST)]
    return found


def nearest(dotted: str, known: Mapping[str, object]) -> set[str]:
    """The longest beginning of a dotted name that is a module; the rest is an item in it."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        if ".".join(parts[:end]) in known:
            return {".".join(parts[:end])}
    return set()


def imported(name: str, is_package: bool, nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """What a module imports, anywhere in it: the name in the module, and the dotted name."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = name.split(".") if is_package else name.split(".")[:-1]
                above = package[: len(package) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                yield alias.asname or alias.name, f"{base}.{alias.name}"


def attributes(names: Mapping[str, str], nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Dotted names that begin with an imported one: `logs.relay`, if `logs` is imported."""
    for node in nodes:
        if isinstance(node, ast.Attribute):
            base = dotted(node.value)
            if base in names:
                yield f"{names[base]}.{node.attr}"


def dotted(node: ast.expr) -> str:
    """A name with attributes as it is written, `a.b`; empty for another expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return base and f"{base}.{node.attr}"
    return ""


def patched(names: Mapping[str, str], nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Imported classes to which a module gives attributes: `Server.stop = function`."""
    for node in nodes:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                owner = target.value.id
                if owner in names and owner[:1].isupper():
                    yield names[owner]


def named(nodes: Iterable[ast.AST], known: Mapping[str, object]) -> set[str]:
    """The modules that strings name, such as `poorhttp.worker.wsgi` or `poorhttp.api:serve`.

    A string that ends with a dot, `f"poorhttp.modes.{name}"`, names all modules of that package.
    The name of the top package alone begins other names too: of loggers, of keys in environ.
    """
    found: set[str] = set()
    for node in nodes:
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        match = DOTTED.fullmatch(node.value)
        if match is None or node.value in GROUPS:
            continue
        if match[2] == ".":
            folder = match[1]
            found |= {each for each in known if each.rpartition(".")[0] == folder}
            found |= {folder} & set(known)
        else:
            found |= {each for each in nearest(match[1], known) if "." in each}
    return found
