"""Limits of the source: arrows between rooms, names of plug-ins, circles, maps of packages."""

from __future__ import annotations

import ast
import re

import pytest

from tests import rooms
from tests.support.graphs import between, circles, reachable
from tests.support.python_imports import modules
from tests.testkit.server import ROOT

#: The crates of `core/`.
CRATES = sorted(path.parent.name for path in (ROOT / "core").glob("*/Cargo.toml"))


# Python


@pytest.mark.parametrize("kind", rooms.FAULTS)
def test_no_fault(kind: str) -> None:
    assert sorted(rooms.FAULTS[kind]()) == [], "`make map` shows all"


def test_each_room_has_its_place() -> None:
    found = {rooms.room(name) for name in rooms.graph()}
    assert {name for name in found if not name.startswith("plugins")} == set(rooms.ORDER)


def test_maps() -> None:
    """A package begins with its map: a line for each of its files and packages."""
    known = {**modules(ROOT / "poorhttp"), **modules(ROOT / "tests")}
    for name, path in known.items():
        if path.name != "__init__.py" or "management" in name or "aliases" in name:
            continue
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        lines = re.findall(r"^(\w+(?:\.py|/)) {2,}\S", text, re.MULTILINE)
        there = {
            *(each.name for each in path.parent.glob("*.py") if not each.name.startswith("__")),
            *(f"{each.parent.name}/" for each in path.parent.glob("*/__init__.py")),
        }
        if name in ("poorhttp", "tests"):
            there |= {"__main__.py"}
        if name == "tests":
            there |= {"apps/", "cases/"}
        assert set(lines) == there, f"{path}: its map and its files differ"


def test_the_picture_of_the_rooms() -> None:
    """docs/internals/architecture.md draws the order of the rooms, and names all plug-ins."""
    page = (ROOT / "docs/internals/architecture.md").read_text(encoding="utf-8")
    picture = page.split("## Rooms")[1].split("```")[1]
    drawn = re.findall(r"\w+", picture.rpartition('"')[2])
    assert list(dict.fromkeys(drawn)) == [each for each in reversed(rooms.ORDER) if each != "top"]
    packages = {path.parent.name for path in ROOT.glob("poorhttp/plugins/*/__init__.py")}
    assert set(re.findall(r"\w+", picture.split('"')[1])) == packages - {"aliases"}


# Rust


@pytest.mark.parametrize("crate", CRATES)
def test_no_circle_of_rooms_in_a_crate(crate: str) -> None:
    src = ROOT / "core" / crate / "src"
    graph = rooms.crates()[crate].paths()
    assert graph or [path.name for path in src.glob("*.rs")] == ["lib.rs"]
    of_rooms = circles(between(graph, rooms.rust_room))
    assert [circle for circle in of_rooms if any((src / each).is_dir() for each in circle)] == []


def test_the_picture_of_the_reactor() -> None:
    """docs/internals/architecture.md draws which rooms of the reactor may use which."""
    page = (ROOT / "docs/internals/architecture.md").read_text(encoding="utf-8")
    drawn: dict[str, set[str]] = {}
    for line in page.split("subgraph reactor")[1].split("end\n")[0].splitlines():
        names = line.split(" --> ")
        for place, name in enumerate(names[1:]):
            drawn.setdefault(names[place].strip(), set()).add(name.strip())
    for name, targets in between(rooms.crates()["reactor"].paths(), rooms.rust_room).items():
        assert targets <= reachable(drawn, name), name
    assert rooms.with_reactor(page) == page, "`make map` draws it"


# The checker itself


@pytest.mark.parametrize(
    ("left", "right", "up"),
    [
        ("net", "logs", False),
        ("logs", "net", True),
        ("worker", "modes", True),
        ("api", "plugins/dev", True),
        ("plugins/dev", "supervisor", False),
        ("plugins/dev", "plugins/monitor", True),
        ("plugins/dev", "plugins/dev", False),
        ("plugins/aliases", "plugins/apps", False),
    ],
)
def test_arrows_up_are_told_apart(left: str, right: str, up: bool) -> None:
    assert rooms.is_up(left, right) is up
