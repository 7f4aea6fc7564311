"""The tests that cover changed files: `python -m tests.covering PATH ...` prints them.

`make test-for PATH ...` runs them. They are derived: the folders of a part of the product from the
table "Layout" of docs/internals/testing.md, single files from what tests import and name. A test
in another folder that meets the change only through a running server is not found, so the whole
suite stays what a change has to pass.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: Run for every change: limits of the source, and what is called in the test's own process.
ALWAYS = ("tests/test_architecture.py", "tests/unit")

#: Names of files that many folders have: a test that names one may mean any of them.
COMMON = {"__init__.py", "__main__.py", "mod.rs", "lib.rs", "main.rs", "index.md", "README.md"}


@cache
def parts() -> dict[str, list[str]]:
    """The folders of tests of each part of the product, by its path."""
    page = (ROOT / "docs/internals/testing.md").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for left, right in re.findall(r"^\| (`.*`) \| [^|]* \| (.*) \|$", page, re.M):
        folders = [f"tests/{name}" for name in re.findall(r"`([^`]+)`", left)]
        for part in re.findall(r"`([^`]+)`", right):
            found[part.rstrip("/")] = [*found.get(part.rstrip("/"), ()), *folders]
    return found


@cache
def texts() -> dict[str, str]:
    """The text of each Python file of the tests, by its path."""
    paths = sorted((ROOT / "tests").rglob("*.py"))
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def names(text: str, path: Path) -> bool:
    """Say whether a text has this path, or its file's name, or imports its module."""
    file = "" if path.name in COMMON else rf"|[/\"'`]{re.escape(path.name)}"
    if re.search(rf"({re.escape(str(path))}{file})(?![\w.-]*\w)", text):
        return True
    if path.suffix not in (".py", ".pyi"):
        return False
    *package, module = (path.parent if path.stem == "__init__" else path.with_suffix("")).parts
    above = re.escape(".".join(package))
    taken = re.findall(rf"\b{above} import (\([^)]*\)|.*)", text) if package else []
    # `import a.b` and `from a.b import name`; not `from a.b.c`, which names a module of its own.
    dotted = re.escape(".".join([*package, module]))
    found = re.search(rf"\b{dotted}(?!\.?\w)|[\"'`]{dotted}\b", text)
    return bool(found) or any(re.search(rf"\b{module}\b", each) for each in taken)


def naming(path: Path) -> set[str]:
    """The test files that name a file; if it is one of the tests, those of files that name it."""
    found: set[str] = set()
    open_files = [path]
    while open_files:
        each = open_files.pop()
        new = {name for name, text in texts().items() if names(text, each)} - found - {str(each)}
        found |= new
        if path.parts[0] == "tests":
            # Most tests take a fixture's type from `conftest.py`, not what it is made with.
            open_files += [Path(name) for name in new if name != "tests/conftest.py"]
    return {name for name in found if Path(name).name.startswith("test_")}


def covering(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """The tests, as arguments of pytest, and the crates whose own tests cover these paths."""
    tests, crates = set(ALWAYS), set()
    for given in paths:
        at = (ROOT / given).resolve().relative_to(ROOT)
        is_folder = (ROOT / at).is_dir()
        inside = [each for each in (at, *at.parents) if str(each) in parts()]
        below = [Path(part) for part in parts() if at in Path(part).parents]
        found = {folder for part in (*inside[:1], *below) for folder in parts()[str(part)]}
        for file in (ROOT / at).rglob("*.*") if is_folder else [ROOT / at]:
            found |= naming(file.relative_to(ROOT))
        if at.parts[:1] == ("tests",) and (is_folder or at.name.startswith("test_")):
            found.add(str(at))
        tests |= found or {"tests"}
        if at.parts[:1] == ("core",) and (ROOT / "core" / at.parts[1] / "Cargo.toml").exists():
            crates.add(at.parts[1])
        elif at.parts[:2] == ("tests", "cases"):
            crates |= {"http", "files"}
    wanted = {test for test in tests if not any(str(up) in tests for up in Path(test).parents)}
    return sorted(wanted), sorted(crates)


if __name__ == "__main__":
    print(*(line for found in covering(sys.argv[1:]) for line in found), sep="\n")
