"""Runs a Python file statement by statement, and tells what each has set.

The process that runs it has given up its rights (sandbox.py).
"""

from __future__ import annotations

import ast
import json
import sys
from types import FunctionType, ModuleType
from typing import TextIO


class Names(dict[str, object]):
    """The names of the module as a statement sets them, with the line of each.

    Everything is kept in the module's own dictionary, in which functions look for names.
    """

    def __init__(self, space: dict[str, object]) -> None:
        self._space = space
        self.lines: dict[str, int] = {}

    def __getitem__(self, name: str) -> object:
        return self._space[name]

    def __setitem__(self, name: str, value: object) -> None:
        self._space[name] = value
        self.lines[name] = sys._getframe(1).f_lineno

    def __delitem__(self, name: str) -> None:
        del self._space[name]


class Statements:
    """Runs the statements of a file one after the other, in the namespace of one module.

    Args:
        text: the source.
        file: its name, for tracebacks.
        names: names to tell about; of others it is only told that they are set, and not used.
        path: the absolute path of the file.
    """

    def __init__(self, text: str, file: str, names: list[str], path: str) -> None:
        self._lines = text.splitlines()
        self._file = file
        self._known = set(names)
        self._tree = ast.parse(text, file)
        module = ModuleType("__config__")
        module.__dict__["__file__"] = path
        sys.modules["__config__"] = module
        self._space = module.__dict__
        self._used = {
            node.id
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        }

    def run(self, skip: list[int], out: TextIO) -> None:
        """Run them, but for those with the numbers in `skip`, and write what each has set."""
        for number, statement in enumerate(self._tree.body):
            report: dict[str, object] = {"statement": number, "line": statement.lineno}
            print(json.dumps({**report, "begins": True}), file=out, flush=True)
            before = dict(self._space)
            names = Names(self._space)
            if number in skip:
                report["error"] = "it does not end, or ends the process"
            else:
                code = compile(ast.Module([statement], []), self._file, "exec")
                try:
                    exec(code, self._space, names)
                except BaseException as error:
                    text = " ".join(str(error).split())
                    report["error"] = f"{type(error).__name__}: {text}"[:300]
            assigned = self._assigned(statement)
            # Some are set by other means, such as globals().
            changed = {
                name: names.lines.get(name, statement.lineno)
                for name, value in self._space.items()
                if name in names.lines or name not in before or before[name] is not value
            }
            report["set"] = [
                {
                    "name": name,
                    "line": line,
                    "text": self._lines[line - 1].strip()[:300],
                    **value_of(self._space[name]),
                }
                for name, line in changed.items()
                if name in self._known or self._is_mistake(name, statement)
            ]
            report["missing"] = [
                {"name": name, "line": line, "text": self._lines[line - 1].strip()[:300]}
                for name, line in assigned.items()
                if name in self._known and name not in changed
            ]
            report["text"] = self._lines[statement.lineno - 1].strip()[:300]
            print(json.dumps(report), file=out, flush=True)

    def _is_mistake(self, name: str, statement: ast.stmt) -> bool:
        """Tell whether a name looks like a setting, and is none: set, and never used."""
        plain = isinstance(statement, (ast.Assign, ast.AnnAssign))
        return plain and name not in self._used and not name.startswith("_") and name.islower()

    def _assigned(self, statement: ast.stmt) -> dict[str, int]:
        """Return the names that a statement sets at the top of the module, with their lines."""
        found: dict[str, int] = {}
        nodes = [statement]
        while nodes:
            node = nodes.pop(0)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found[node.name] = node.lineno
                continue
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                    found[child.id] = child.lineno
                elif not isinstance(child, ast.Lambda):
                    nodes.append(child)  # type: ignore[arg-type]
        return found


def value_of(value: object, depth: int = 0) -> dict[str, object]:
    """Return a value for JSON, under the name of its kind."""
    if value is None or isinstance(value, (bool, int, float, str)):
        plain = value if isinstance(value, (bool, type(None))) else type(value).__mro__[-2](value)
        if isinstance(plain, str) and len(plain) > 10_000:
            return {"other": "a text of more than 10,000 characters"}
        return {"value": plain}
    if isinstance(value, FunctionType):
        return {"function": f"{value.__module__}.{value.__qualname__}"}
    if isinstance(value, type):
        return {"value": f"{value.__module__}.{value.__qualname__}"}
    if isinstance(value, (list, tuple, set, frozenset)) and depth < 3:
        items = [value_of(item, depth + 1) for item in list(value)[:1000]]
        return {"value": [item.get("value", item.get("other")) for item in items]}
    if isinstance(value, dict) and depth < 3:
        pairs = [(str(key), value_of(item, depth + 1)) for key, item in list(value.items())[:1000]]
        return {"value": {key: item.get("value", item.get("other")) for key, item in pairs}}
    if callable(value):
        return {"function": type(value).__name__}
    return {"other": f"an object of {type(value).__module__}.{type(value).__qualname__}"}
