"""Limits of the source: arrows between rooms, names of plug-ins, circles, maps of packages."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests import rooms
from tests.support.graphs import Graph, between, circles, reachable
from tests.support.plugin_names import plugin_names
from tests.support.python_imports import attributes, imported, modules, named, patched, python_graph
from tests.support.rust_imports import Crate, Source
from tests.testkit.server import ROOT

#: The crates of `core/`.
CRATES = sorted(path.parent.name for path in (ROOT / "core").glob("*/Cargo.toml"))


# Python


@pytest.mark.parametrize("kind", rooms.FAULTS)
def test_no_fault_but_known_ones(kind: str) -> None:
    """Faults that are not mended yet stand in tests/known_faults.txt, which only gets shorter.

    `python -m tests.rooms shorten` takes out what is mended, also after a merge.
    """
    there = {f"{kind}: {each}" for each in rooms.FAULTS[kind]()}
    known = {each for each in rooms.known_faults() if each.startswith(f"{kind}: ")}
    assert sorted(there - known) == [], "new: `make map` shows all"
    assert sorted(known - there) == [], "mended: python -m tests.rooms shorten"


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


# Tests and the load lab


@pytest.fixture(scope="module")
def tests_and_lab() -> dict[str, set[str]]:
    return python_graph(ROOT / "tests", ROOT / "loadtests", strings=False)


def test_no_circle_in_tests_and_lab(tests_and_lab: Graph) -> None:
    large = [each for each in circles(tests_and_lab) if len(each) > rooms.MOST_IN_A_CIRCLE]
    assert large == []
    assert circles(between(tests_and_lab, room_of_tests)) == []


def test_what_tests_and_lab_share(tests_and_lab: Graph) -> None:
    """The lab imports nothing of the tests; the testkit imports of the tests only itself."""
    arrows = between(tests_and_lab, room_of_tests)
    assert [to for to in arrows["tests.testkit"] if not in_lab(to)] == []
    of_lab = {to for name, targets in arrows.items() if in_lab(name) for to in targets}
    assert {name for name in of_lab if not in_lab(name)} == set()


def room_of_tests(name: str) -> str:
    """The room in which a module of the tests or the lab stands: a folder, or the module itself."""
    return ".".join(name.split(".")[:2])


def in_lab(name: str) -> bool:
    """Whether this is a module or a room of the lab."""
    return f"{name}.".startswith("loadtests.")


# Rust


@pytest.mark.parametrize("crate", CRATES)
def test_no_circle_of_rooms_in_a_crate(crate: str) -> None:
    src = ROOT / "core" / crate / "src"
    graph = Crate(src).paths()
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


def test_all_crates_are_looked_at() -> None:
    assert set(rooms.crates()) == set(CRATES)


# The checker itself


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": {"d"}, "f": {"f"}}
    assert circles(graph) == [["a", "b", "c"], ["d", "e"]]
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_rooms_are_told_apart() -> None:
    assert rooms.room("poorhttp") == rooms.room("poorhttp.__main__") == "top"
    assert rooms.room("poorhttp.net.sockets") == rooms.room("poorhttp.net") == "net"
    assert rooms.room("poorhttp.plugins.dev.reload.watch.watcher") == "plugins/dev"


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


def test_imports_are_found() -> None:
    source = """
from __future__ import annotations
import a.b
from . import beside
from ..up import one, two
TYPE_CHECKING = False
if TYPE_CHECKING:
    from only import types
else:
    import really
def later():
    if x:
        from late import thing
class Body:
    import inside
"""
    nodes = list(ast.walk(ast.parse(source)))
    found = {
        *("__future__.annotations", "a.b", "p.q.beside", "p.up.one", "p.up.two", "only.types"),
        *("really", "late.thing", "inside"),
    }
    assert {what for _, what in imported("p.q.r", False, nodes)} == found
    assert ("beside", "p.q.r.beside") in set(imported("p.q.r", True, nodes))


def test_other_dependencies_are_found() -> None:
    source = """
from p import logs, Server
logs.relay.start()
Server.stop = None
name = import_module("p.late")
table = {"a": "p.net.sockets:Listener", "b": f"p.modes.{each}", "c": "p.key", "d": "p.net.x y"}
"""
    nodes = list(ast.walk(ast.parse(source)))
    names = dict(imported("p.x", False, nodes))
    known = dict.fromkeys(("p", "p.late", "p.net", "p.net.sockets", "p.modes", "p.modes.one"))
    assert "p.logs.relay" in set(attributes(names, nodes))
    assert set(patched(names, nodes)) == {"p.Server"}
    assert named(nodes, known) == {"p.late", "p.net.sockets", "p.modes", "p.modes.one"}


def test_names_of_plugins_are_found() -> None:
    source = '''
"""A console in a docstring, poorhttp.plugins.dev, is for people."""
from poorhttp.process import terminal_modes
from a import AdminControl as control
def serve(settings, services, reloader=None):
    self.open_console()
    settings.debug, services[0].origin("live"), path.open(), log.debug("the console is closed")
    getattr(settings, "open"), "otel", "poorhttp.plugins.dev:install", "alive"
    path.startswith("cgi:"), "static:", "--cgi-environment", "--env"
'''
    assert plugin_names(source, {"debug", "live", "open"}) == {
        *("reloader", "open_console", "settings.debug", "settings.live", "settings.open"),
        *("otel", "poorhttp.plugins.dev", "poorhttp.plugins.dev:install"),
        *("cgi:", "--cgi-environment"),
    }


def test_names_of_a_crate_are_found() -> None:
    source = """
use std::fmt;
use crate::one::{self, two::{Three, four as other}, *};
use super::super::above::Thing;
mod child;
pub use child::PassedOn;
// use crate::a_comment;
fn call() -> crate::path::Type { crate::function(); child::run("crate::text"); one::x::go() }
#[cfg(test)]
mod tests {
    use crate::only_for_tests;
}
"""
    found = Source(["room", "folder", "file"], source)
    assert {"/".join(parts) for parts in found.paths()} == {
        *("one", "one/two/Three", "one/two/four", "room/above/Thing", "path/Type", "function"),
        *("room/folder/file/child/run", "one/x/go"),
    }
    assert found.public == {"PassedOn": ["room", "folder", "file", "child", "PassedOn"]}


def test_types_with_methods_elsewhere_are_found() -> None:
    source = """
use crate::x::Thing;
impl Thing {
}
impl<'a, T: Into<u8>> Other<'a, T> where T: Copy {
}
impl std::fmt::Display for Third {
}
"""
    assert Source(["y"], source).extended() == {"Thing", "Other"}


def test_arrows_of_a_crate_are_found(tmp_path: Path) -> None:
    texts = {
        "lib": "mod a; mod b; mod c;",
        "a/mod": "mod x; pub use x::Item; mod y; use crate::b;",
        "a/x": "pub struct Item; use super::y;",
        "a/y": "use crate::c::C; use crate::a::Item;",
        "b": "use crate::c::{C, D}; pub struct Kind;",
        "c": "pub struct C; fn c() { crate::a::x::run() }\nimpl crate::b::Kind {}",
    }
    (tmp_path / "a").mkdir()
    for name, text in texts.items():
        (tmp_path / f"{name}.rs").write_text(text.replace("; ", ";\n"))
    crate = Crate(tmp_path)
    paths = {"a": {"b"}, "a/x": {"a/y"}, "a/y": {"c", "a/x"}, "b": {"c"}, "c": {"a/x"}}
    assert crate.spread_types() == {("b", "Kind"): {"c"}}
    assert crate.paths() == {**paths, "c": {"a/x", "b"}}
    assert circles(crate.paths()) == [["a/x", "a/y", "b", "c"]]
