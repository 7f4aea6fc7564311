"""What the lab imports: nothing of the tests, and of the server what its documents promise."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from loadtests.programs import ROOT

#: What it lists under "What the lab uses of the server".
PAGE = ROOT / "docs" / "internals" / "design" / "lab.md"


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


def faults(source: str) -> list[str]:
    """What a file of the lab must not import."""
    allowed = promised()
    return [
        name
        for name in imports(source)
        if name.startswith("tests.")
        or (
            name.startswith("poorhttp.")
            and not any(f"{name}.".startswith(f"{one}.") for one in allowed)
        )
    ]


def test_the_lab_imports_what_is_promised() -> None:
    found = {
        str(path.relative_to(ROOT)): wrong
        for path in (ROOT / "loadtests").rglob("*.py")
        if (wrong := faults(path.read_text(encoding="utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize(
    "name", ["tests.testkit.client", "poorhttp._core", "poorhttp.worker", "poorhttp.config.ini"]
)
def test_what_is_not_promised_is_found(name: str) -> None:
    package, _, module = name.rpartition(".")
    assert faults(f"def f():\n    from {package} import {module}") == [name]
