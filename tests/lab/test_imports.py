"""What the lab imports: nothing of the tests, and of the server what its documents promise."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadtests.programs import ROOT

LAB = ROOT / "loadtests"
#: What `docs/internals/design/lab.md` lists under "What the lab uses of the server".
PAGE = ROOT / "docs" / "internals" / "design" / "lab.md"
#: Files that are data or pictures, or show what a server is told: `poorhttp.ini`.
TEXTS = {".py", ".c", ".h", ".sh", ".lua", ".ini", ".conf", ".cfg", ".jinja", ".txt", ".toml", ""}
#: Names of files and of metrics that begin as the package does.
NO_MODULES = {"ini", "service", "sock", "log", "pid"}


def promised() -> set[str]:
    """The names that the page lists."""
    part = PAGE.read_text(encoding="utf-8").split("## What the lab uses of the server")[1]
    return set(re.findall(r"`(poorhttp(?:\.\w+)+)`", part.split("\n## ")[0]))


def imports(source: str) -> Iterator[str]:
    """The dotted names that a file imports: in functions, and for types only, too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def names(source: str) -> Iterator[str]:
    """The dotted names of modules in a text: of a command, of a program, of an import by name."""
    yield from re.findall(r"(?<![\w./-])(?:tests|poorhttp)(?:\.[A-Za-z_]\w*)+", source)
    for module, imported in re.findall(
        r"from[ ~]+((?:tests|poorhttp)[\w.]*)[ ~]+import[ ~]+([\w, ]+)", source
    ):
        yield from (f"{module}.{name.split()[0]}" for name in imported.split(",") if name.strip())
    if re.search(r"(?<![\w.])import[ ~]+tests\b|-m[\", \'~]+tests\b|[\"'/]tests[\"'/]", source):
        yield "tests"


def faults(source: str, *, python: bool = True) -> list[str]:
    """What a file of the lab must not name."""
    allowed = promised()
    found = {*names(source), *(imports(source) if python else ())}
    wrong = []
    for name in sorted(found):
        first, *rest = name.split(".")
        if first == "tests":
            wrong.append(name)
        elif rest and first == "poorhttp" and rest[0] not in NO_MODULES:
            is_allowed = any(f"{name}.".startswith(f"{one}.") for one in allowed)
            wrong += [] if is_allowed else [name]
    return wrong


def files() -> list[Path]:
    found = [path for path in LAB.rglob("*") if path.is_file() and path.suffix in TEXTS]
    return [path for path in found if "__pycache__" not in path.parts]


def test_the_lab_imports_what_is_promised() -> None:
    found = {
        str(path.relative_to(ROOT)): wrong
        for path in files()
        if (wrong := faults(path.read_text(encoding="utf-8"), python=path.suffix == ".py"))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("from tests.testkit import client", ["tests.testkit", "tests.testkit.client"]),
        ("if TYPE_CHECKING:\n    import tests.support", ["tests", "tests.support"]),
        ("def f():\n    from tests import packages", ["tests.packages"]),
        ('run([python, "-m", "tests", "x"])', ["tests"]),
        ('ROOT / "tests/cases"', ["tests"]),
        ('ROOT / "tests" / "cases"', ["tests"]),
        ('importlib.import_module("tests.support.hosts")', ["tests.support.hosts"]),
        ("from poorhttp.config import ini", ["poorhttp.config", "poorhttp.config.ini"]),
        ("from poorhttp import _core", ["poorhttp._core"]),
        ("def f():\n    import poorhttp.worker", ["poorhttp.worker"]),
        ('"{python} -c from~poorhttp.cli~import~main"', ["poorhttp.cli", "poorhttp.cli.main"]),
        ('script = "from poorhttp import modes, serve"', ["poorhttp.modes", "poorhttp.serve"]),
    ],
)
def test_what_is_not_promised_is_found(source: str, named: list[str]) -> None:
    assert faults(source) == named
