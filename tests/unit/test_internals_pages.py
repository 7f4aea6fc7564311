"""docs/internals: every file, folder, class and function that a page names exists in the tree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from tests.testkit.server import ROOT

#: Not the decision records, which are dated: what they name may have gone since.
PAGES = sorted(
    path.relative_to(ROOT)
    for path in (ROOT / "docs/internals").rglob("*.md")
    if path.parent.name != "decisions"
)

#: Folders in which named files are looked for, besides those at the top.
FOLDERS = (
    *(".cargo", ".ci", "apps", "conf", "core", "docs", "loadtests", "poorhttp", "proxy", "tests"),
)

#: Parts of paths of what is built or measured.
BUILT = {"target", "__pycache__", "results", "locale"}

#: A code span that names a path: with a slash, or with an ending of a source.
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)+/?|[\w-]+/|[\w-]+\.(?:py|pyi|rs|c|txt|ini|toml|sh)")

#: A code span that names something of a source: `snake_case`, `CamelCase`, `Word`, `a.b_c`, `a::b`.
NAME = re.compile(
    r"(?:\w+(?:\.|::))*(?:\w*(?:[a-z0-9]_[a-z]|[a-z][A-Z])\w*|[A-Z][a-z]\w+)(?:\(\))?"
)

#: Paths of projects, of what `make` writes, and of other programs.
FOREIGN_PATHS = re.compile(r"manage\.py|gunicorn\.conf\.py|build/.*|\.venv/.*")

#: Names of libraries.
FOREIGN_NAMES = frozenset({"Pool.terminate", "miniz_oxide"})


def files() -> Iterator[Path]:
    """The files of the repository, by their path in it."""
    yield from (path.relative_to(ROOT) for path in ROOT.iterdir() if path.is_file())
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and not BUILT & set(path.parts):
                yield path.relative_to(ROOT)


@cache
def paths() -> frozenset[str]:
    """All files and folders, by their whole path and by each end of it."""
    whole = {
        each for path in files() for each in (PurePosixPath(path), *PurePosixPath(path).parents)
    }
    return frozenset("/".join(path.parts[at:]) for path in whole for at in range(len(path.parts)))


@cache
def sources() -> Mapping[Path, str]:
    """The text of all sources."""
    endings = {".py", ".pyi", ".rs", ".c", ".toml", ".ini"}
    own = Path(__file__).relative_to(ROOT)
    found = (path for path in files() if path.suffix in endings and path != own)
    return {path: (ROOT / path).read_text(encoding="utf-8") for path in found}


@cache
def words() -> frozenset[str]:
    return frozenset().union(*(re.findall(r"\w+", text) for text in sources().values()))


def spans(text: str) -> Iterator[tuple[int, str]]:
    """The code spans of a page outside of blocks of code, each with the number of its line."""
    is_block = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_block = not is_block
        elif not is_block:
            yield from ((number, span) for span in re.findall(r"`([^`]+)`", line))


def exists(span: str) -> bool:
    """Whether the tree has what a code span names; also true for spans that name nothing of it."""
    if PATH.fullmatch(span):
        return span.rstrip("/") in paths() or FOREIGN_PATHS.fullmatch(span) is not None
    if span in FOREIGN_NAMES or not NAME.fullmatch(span):
        return True
    return words().issuperset(re.findall(r"\w+", span))


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_what_a_page_names_exists(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [f"{page}:{number}: {span}" for number, span in spans(text) if not exists(span)] == []


def test_files_that_contributing_names_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = [span for _, span in spans(text) if PATH.fullmatch(span) and "NAME" not in span]
    assert named
    assert [span for span in named if not exists(span)] == []


def test_what_does_not_exist_is_found() -> None:
    nowhere = [
        *("supervisor/no_such_file.py", "no_such_folder/", "no_such_function_at_all()"),
        *("ControlChannel.no_such_method", "NoSuchClass", "Reactor::no_such_method"),
    ]
    found = [*spans("\n".join(f"text `{span}` text" for span in nowhere))]
    assert found == [*enumerate(nowhere, 1)]
    assert [span for span in nowhere if exists(span)] == []
