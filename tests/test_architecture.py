"""Limits of the source: imports between rooms and files, and the map of each package."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.rust_imports import named, nearest, rust_graph
from tests.testkit.server import ROOT

#: Most modules of one circle of imports: what belongs together may be in two or three files.
MOST_IN_A_CIRCLE = 3

#: Packages whose packages are rooms too.
HOUSES = ("poorhttp", "poorhttp.plugins")

#: Who may import the development server: those who read the options.
ENTRIES = ("poorhttp.api", "poorhttp.cli")

#: The crates of `core/`.
CRATES = sorted(path.parent.name for path in (ROOT / "core").glob("*/Cargo.toml"))

Graph = Mapping[str, set[str]]


def modules(folder: Path) -> dict[str, Path]:
    """The modules of a package, by their dotted names."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        names = path.relative_to(folder.parent).with_suffix("").parts
        found[".".join(names[:-1] if names[-1] == "__init__" else names)] = path
    return found


def statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """All imports below a node, also those in functions, but for those of `if TYPE_CHECKING:`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            for other in child.orelse:
                yield from statements(ast.Module([other], []))
        else:
            yield from statements(child)


def imported(name: str, is_package: bool, source: str) -> Iterator[str]:
    """The dotted names that a module imports, each with what it takes from there."""
    for statement in statements(ast.parse(source)):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
            continue
        base = statement.module or ""
        if statement.level:
            package = name.split(".") if is_package else name.split(".")[:-1]
            above = package[: len(package) - statement.level + 1]
            base = ".".join([*above, *([base] if base else [])])
        yield from (f"{base}.{alias.name}" for alias in statement.names)


def python_graph(*folders: Path) -> dict[str, set[str]]:
    """Which module of packages imports which; an extension, `_core`, is one that imports none.

    A package is imported with each of its modules; that is not counted, only what it is asked for.
    """
    known = {name: path for folder in folders for name, path in modules(folder).items()}
    graph: dict[str, set[str]] = {name: set() for name in known}
    graph.update({f"{folder.name}._core": set() for folder in folders})
    for name, path in known.items():
        is_package = path.name == "__init__.py"
        for what in imported(name, is_package, path.read_text(encoding="utf-8")):
            graph[name] |= nearest(what.split("."), ".", graph) - {name}
    return graph


def circles(graph: Graph) -> list[list[str]]:
    """The circles of a graph: sets of nodes that reach each other (Tarjan), the largest first."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_nodes: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        numbers[node] = lowest[node] = len(numbers)
        open_nodes.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in numbers:
                visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in open_nodes:
                lowest[node] = min(lowest[node], numbers[other])
        if lowest[node] == numbers[node]:
            place = open_nodes.index(node)
            circle = sorted(open_nodes[place:])
            del open_nodes[place:]
            if len(circle) > 1:
                found.append(circle)

    for node in sorted(graph):
        if node not in numbers:
            visit(node)
    return sorted(found, key=len, reverse=True)


def room(name: str, houses: Iterable[str] = HOUSES) -> str:
    """The room in which a module stands: a package of a house, or the module itself at its top."""
    inner = max((each for each in houses if f"{name}.".startswith(f"{each}.")), key=len)
    rest = name[len(inner) + 1 :]
    return f"{inner}.{rest.partition('.')[0]}" if rest else inner


def rooms(graph: Graph, room: Callable[[str], str] = room) -> dict[str, set[str]]:
    """Which room imports from which."""
    between: dict[str, set[str]] = {room(name): set() for name in graph}
    for name, targets in graph.items():
        between[room(name)] |= {room(target) for target in targets} - {room(name)}
    return between


def rust_room(name: str) -> str:
    """The room in which a file of a crate stands: a folder, or the file itself at its top."""
    return name.partition("/")[0]


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    return python_graph(ROOT / "poorhttp")


# Python


def test_no_large_circle_of_modules(graph: Graph) -> None:
    assert [circle for circle in circles(graph) if len(circle) > MOST_IN_A_CIRCLE] == []


def test_no_circle_of_rooms(graph: Graph) -> None:
    assert circles(rooms(graph)) == []


def test_who_imports_the_development_server(graph: Graph) -> None:
    found = {
        name
        for name, targets in graph.items()
        if not name.startswith("poorhttp.plugins.dev")
        and any(room(to).count(".dev") for to in targets)
    }
    assert found == set(ENTRIES)


@pytest.mark.parametrize("name", ["cgi", "dispatch", "pages"])
def test_what_answers_knows_nothing_of_processes_that_serve(graph: Graph, name: str) -> None:
    """Not directly, nor by way of others."""
    reached = {
        room(target)
        for module in graph
        if room(module) == f"poorhttp.{name}"
        for target in reachable(graph, module)
    }
    assert (
        reached
        & {
            *("poorhttp.supervisor", "poorhttp.worker", "poorhttp.net", "poorhttp.modes"),
            *("poorhttp.targets", "poorhttp.plugins.dev", "poorhttp.cli", "poorhttp.api"),
        }
        == set()
    )


def test_maps() -> None:
    """A package begins with its map: a line for each of its files and packages."""
    known = {**modules(ROOT / "poorhttp"), **modules(ROOT / "tests")}
    for name, path in known.items():
        if path.name != "__init__.py" or "management" in name or "aliases" in name:
            continue
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        lines = [line.split()[0] for line in text.splitlines() if "   " in line.strip()]
        there = {
            *(each.name for each in path.parent.glob("*.py") if not each.name.startswith("__")),
            *(f"{each.parent.name}/" for each in path.parent.glob("*/__init__.py")),
        }
        if name in ("poorhttp", "tests"):
            there |= {"__main__.py"}
        if name == "tests":
            there |= {"apps/", "cases/"}
        assert set(lines) == there, f"{path}: its map and its files differ"


def test_the_picture_of_the_rooms(graph: Graph) -> None:
    """docs/internals/architecture.md draws the arrows that do not follow from others."""
    page = (ROOT / "docs/internals/architecture.md").read_text(encoding="utf-8")
    picture = page.split("## Rooms")[1].split("```")[1]
    drawn = {(left, right) for left, right in re.findall(r"(\w+) --> (\w+)", picture)}
    arrows: dict[str, set[str]] = {}
    for name, targets in rooms(graph).items():
        shown = name.split(".")[1:2]
        if shown and shown != ["__main__"]:
            found = {target.split(".")[1] for target in targets if "." in target}
            arrows.setdefault(shown[0], set()).update(found - set(shown))
    assert drawn == {
        (left, right)
        for left, targets in arrows.items()
        for right in targets
        if not any(right in reachable(arrows, other) for other in targets - {right})
    }


def reachable(graph: Graph, start: str) -> set[str]:
    """All nodes to which arrows lead from a node."""
    found: set[str] = set()
    open_nodes = [start]
    while open_nodes:
        new = set(graph.get(open_nodes.pop(), ())) - found
        found |= new
        open_nodes += new
    return found


# Tests and the load lab


@pytest.fixture(scope="module")
def tests_and_lab() -> dict[str, set[str]]:
    return python_graph(ROOT / "tests", ROOT / "loadtests")


def test_no_circle_in_tests_and_lab(tests_and_lab: Graph) -> None:
    assert [circle for circle in circles(tests_and_lab) if len(circle) > MOST_IN_A_CIRCLE] == []
    assert circles(rooms(tests_and_lab, room_of_tests)) == []


def test_what_tests_and_lab_share(tests_and_lab: Graph) -> None:
    """The lab imports nothing of the tests; the testkit imports of the tests only itself."""
    arrows = rooms(tests_and_lab, room_of_tests)
    assert [to for to in arrows["tests.testkit"] if not in_lab(to)] == []
    of_lab = {to for name, targets in arrows.items() if in_lab(name) for to in targets}
    assert {name for name in of_lab if not in_lab(name)} == set()


def room_of_tests(name: str) -> str:
    """The room in which a module of the tests or the lab stands: a folder, or the module itself."""
    return room(name, ("tests", "loadtests"))


def in_lab(name: str) -> bool:
    """Whether this is a module or a room of the lab."""
    return f"{name}.".startswith("loadtests.")


# Rust


@pytest.mark.parametrize("crate", CRATES)
def test_no_circle_in_a_crate(crate: str) -> None:
    """None of more than a few files; of rooms, none."""
    src = ROOT / "core" / crate / "src"
    graph = rust_graph(src)
    assert graph or [path.name for path in src.glob("*.rs")] == ["lib.rs"]
    assert [circle for circle in circles(graph) if len(circle) > MOST_IN_A_CIRCLE] == []
    between = circles(rooms(graph, rust_room))
    assert [circle for circle in between if any((src / each).is_dir() for each in circle)] == []


def test_all_crates_are_looked_at() -> None:
    assert {path.parent.name for path in ROOT.glob("core/*/Cargo.toml")} == set(CRATES)


# The checker itself


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": {"d"}, "f": {"f"}}
    assert circles(graph) == [["a", "b", "c"], ["d", "e"]]
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_rooms_are_told_apart() -> None:
    assert room("poorhttp") == "poorhttp"
    assert room("poorhttp.cli") == "poorhttp.cli"
    assert room("poorhttp.net.sockets") == room("poorhttp.net") == "poorhttp.net"
    assert room("poorhttp.plugins.monitor.metrics") == "poorhttp.supervisor"
    assert room("poorhttp.plugins.dev") == "poorhttp.plugins.dev"
    assert room("poorhttp.plugins.dev.reload.watch.watcher") == "poorhttp.plugins.dev.reload"


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
    assert list(imported("p.q.r", False, source)) == [
        *("__future__.annotations", "a.b", "p.q.beside", "p.up.one", "p.up.two", "really"),
        *("late.thing", "inside"),
    ]
    assert "p.q.r.beside" in list(imported("p.q.r", True, source))


def test_names_of_a_crate_are_found() -> None:
    source = """
use std::fmt;
use crate::one::{self, two::{Three, four as other}, *};
use super::beside::Thing;
// use crate::a_comment;
fn call() -> crate::path::Type { crate::function() }
#[cfg(test)]
mod tests {
    use crate::only_for_tests;
}
"""
    assert [" ".join(parts) for parts in named(source, ["room", "file"])] == [
        *("one self", "one two Three", "one two four", "one *", "room beside Thing", "path Type"),
        "function",
    ]


def test_circles_in_a_crate_are_found(tmp_path: Path) -> None:
    texts = {"a/mod": "use crate::b;", "a/x": "use super::y;", "a/y": "use crate::c::C;"}
    texts |= {"b": "use crate::c::{C, D};", "c": "fn c() { crate::a::x::run() }", "lib": "use a;"}
    (tmp_path / "a").mkdir()
    for name, text in texts.items():
        (tmp_path / f"{name}.rs").write_text(text)
    graph = rust_graph(tmp_path)
    assert graph == {"a": {"b"}, "a/x": {"a/y"}, "a/y": {"c"}, "b": {"c"}, "c": {"a/x"}}
    assert circles(graph) == [["a/x", "a/y", "c"]]
    assert circles(rooms(graph, rust_room)) == [["a", "b", "c"]]
