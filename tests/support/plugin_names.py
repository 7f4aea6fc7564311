"""Finds names of plug-ins in a source file of the core, which must not have any.

Imports are not looked at here: an import of a plug-in is an arrow up (`tests.rooms`). Sentences in
strings, comments and docstrings are for people and are not looked at either.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.support.python_imports import walk

#: Words that only plug-ins have. An identifier is read as words: `AdminControl` is admin, control.
NOUNS = frozenset(
    (
        *("admin", "otel", "opentelemetry", "statsd", "inspection", "prometheus"),
        *("reloader", "autoreload", "console", "terminal", "profiler", "debugger", "livereload"),
        *("tls", "certificate", "certificates", "alpn", "hsts", "preload", "preloader"),
        *("development", "discovery", "django", "flask", "migrate", "completion", "cgi", "pages"),
    )
)

#: Identifiers of the core in which one of these words means something else.
OF_THE_CORE = frozenset(("terminal_modes", "advise_huge_pages"))

WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
#: What names the package of plug-ins, also within a longer string.
OF_PLUGINS = re.compile(r"\bpoorhttp\.plugins[\w.]*|\bplugins/(?!aliases)[\w/]*")
#: The call that makes an option.
DECLARED = re.compile(r"\b(?:Option|Repeatable|WordList)\(")
ONE_NAME = re.compile(r"-{0,2}\w+([-.:/]\w+)*:?")


def options(folder: Path) -> set[str]:
    """The options that classes below a folder declare: `name = Option(...)` in their body."""
    found = set()
    for path in folder.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        for node in walk(source) if DECLARED.search(source) else ():
            for each in node.body if isinstance(node, ast.ClassDef) else ():
                if (
                    isinstance(each, ast.Assign)
                    and isinstance(each.value, ast.Call)
                    and DECLARED.fullmatch(f"{ast.unparse(each.value.func)}(")
                ):
                    found |= {target.id for target in each.targets if isinstance(target, ast.Name)}
    return found


def plugin_names(source: str, options: set[str]) -> set[str]:
    """The names of plug-ins in a module: as in the source, or `settings.` and an option."""
    nodes = walk(source)
    found = {name for name in identifiers(nodes) if is_of_plugin(name)}
    found |= {name for name in strings(nodes) if is_of_plugin(name) or OF_PLUGINS.match(name)}
    common = {name for name in options if not is_of_plugin(name)}
    return found | {f"settings.{name}" for name in read_options(nodes) if name in common}


def is_of_plugin(name: str) -> bool:
    """Whether one of the words of a name is a noun of plug-ins."""
    return bool(NOUNS & set(words(name))) and name not in OF_THE_CORE


def words(name: str) -> list[str]:
    """The words of an identifier in lower case."""
    return [word.lower() for word in WORDS.findall(name)]


def identifiers(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """All identifiers of a module: of variables, attributes, functions, classes, parameters."""
    for node in nodes:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.arg, ast.keyword)):
            yield node.arg or ""
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.rpartition(".")[2]


def strings(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Strings that are one name: `cgi`, `cgi:`, `--cgi`, `a.b:c`.

    From longer ones, names of plug-ins' modules.
    """
    documents = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) in documents:
                continue
            yield from OF_PLUGINS.findall(node.value)
            if ONE_NAME.fullmatch(node.value) and not node.value.startswith("docs/"):
                yield node.value


def read_options(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """What may be an option: `settings.NAME`, `settings.is_set("NAME")`, `self.NAME` in it."""
    for node in nodes:
        if isinstance(node, ast.Attribute):
            if is_settings(node.value):
                yield node.attr
        elif isinstance(node, ast.Call):
            if is_settings(node.func) or any(map(is_settings, node.args[:1])):
                for each in node.args:
                    if isinstance(each, ast.Constant) and isinstance(each.value, str):
                        yield each.value
        elif isinstance(node, ast.ClassDef) and node.name == "Settings":
            for inner in ast.walk(node):
                if isinstance(inner, ast.Attribute) and ast.unparse(inner.value) == "self":
                    yield inner.attr


def is_settings(node: ast.expr) -> bool:
    """Whether an expression is named as settings are: `self.settings`, `services[0].x`."""
    while True:
        if isinstance(node, ast.Name):
            return "settings" in node.id or "services" in node.id
        if isinstance(node, ast.Attribute):
            if "settings" in node.attr or "services" in node.attr:
                return True
            node = node.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return False
