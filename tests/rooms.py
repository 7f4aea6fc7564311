"""The packages of the source (rooms): sizes, imports, and imports that the order forbids.

python -m tests.rooms            rooms from below with lines, arrows, faults; a picture of them, and
                                 that of the reactor in docs/internals/architecture.md
python -m tests.rooms sizes      a line for each room with its size
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.support import plugin_names
from tests.support.graphs import Graph, between, circles, reachable, reduced
from tests.support.python_imports import modules, python_graph
from tests.support.rust_imports import Crate

ROOT = Path(__file__).resolve().parents[1]

#: The core from below: a room imports only rooms before it.
#: `top` is `poorhttp/__init__.py` with `__main__.py`.
ORDER = (
    *("errors", "_core", "config", "process", "logs", "net", "targets", "worker", "modes"),
    *("supervisor", "api", "cli", "top"),
)

#: Plug-ins, above all of the core. They do not import each other, but `aliases` may import any.
ANY = "plugins/aliases"

#: What extension modules have for several plug-ins, with the types: any of them may import it. So
#: are those in folders of plug-ins, `poorhttp.plugins.tls._tls`.
NATIVE = "plugins/native"

#: The one file of the core that names plug-ins, as strings.
REGISTRY = "poorhttp.config.registry"

#: Most modules of one circle of imports: what belongs together may be in two or three files.
MOST_IN_A_CIRCLE = 3

#: The rooms and their arrows, drawn when they are printed.
PICTURE = ROOT / "build/map.svg"

#: The page with the picture of the rooms of the reactor.
ARCHITECTURE = ROOT / "docs/internals/architecture.md"


def room(module: str) -> str:
    """The room in which a module of `poorhttp` stands: `net`, `plugins/dev`."""
    parts = module.split(".")[1:]
    if not parts or parts == ["__main__"]:
        return "top"
    if parts[0] == "plugins" and parts[-1].startswith("_"):
        return NATIVE
    return "/".join(parts[: 2 if parts[0] == "plugins" else 1])


def is_up(left: str, right: str) -> bool:
    """Whether a room may not import another one: from below, or from a plug-in to another."""
    if left in (right, ANY):
        return False
    if right.startswith("plugins"):
        return right != NATIVE or not left.startswith("plugins")
    return not left.startswith("plugins") and ORDER.index(left) < ORDER.index(right)


@cache
def graph() -> Graph:
    """Which module of `poorhttp` depends on which, but for the names of plug-ins in the registry.

    The extension depends also on the modules that its Rust code imports by a string, but for other
    extension modules: it names where classes are that were its own.
    """
    found = python_graph(ROOT / "poorhttp")
    for path in (ROOT / "core").glob("*/src/**/*.rs"):
        for name in re.findall(r'"(poorhttp\.[\w.]+)"', path.read_text(encoding="utf-8")):
            found["poorhttp._core"] |= {name} & set(found) - {"poorhttp._core"}
    found["poorhttp._core"] = {to for to in found["poorhttp._core"] if room(to) != NATIVE}
    if REGISTRY in found:
        found[REGISTRY] = {to for to in found[REGISTRY] if not to.startswith("poorhttp.plugins")}
    return found


def arrows_up() -> Iterator[str]:
    """Imports from below to above: `poorhttp.net.x -> poorhttp.worker.y`."""
    for name, targets in graph().items():
        yield from (f"{name} -> {to}" for to in targets if is_up(room(name), room(to)))


def in_large_circles() -> Iterator[str]:
    """The modules of circles of more than a few."""
    for circle in circles(graph()):
        yield from circle if len(circle) > MOST_IN_A_CIRCLE else ()


def names_of_plugins() -> Iterator[str]:
    """Names of plug-ins in the core: `poorhttp.net.x: console`."""
    options = plugin_names.options(ROOT / "poorhttp/plugins")
    for name, path in modules(ROOT / "poorhttp").items():
        if not room(name).startswith("plugins") and name != REGISTRY:
            found = plugin_names.plugin_names(path.read_text(encoding="utf-8"), options)
            own = path.stem if plugin_names.is_of_plugin(path.stem) else ""
            yield from (f"{name}: {each}" for each in found | {own} - {""})


@cache
def crates() -> dict[str, Crate]:
    """The crates of `core/`, by their names."""
    return {
        path.parent.name: Crate(path.parent / "src")
        for path in sorted((ROOT / "core").glob("*/Cargo.toml"))
    }


def in_large_circles_of_rust() -> Iterator[str]:
    """The files of circles in a crate, by paths and by methods: `http/parser/head`."""
    for name, crate in crates().items():
        for circle in circles(crate.graph()):
            yield from (f"{name}/{each}" for each in circle if len(circle) > MOST_IN_A_CIRCLE)


def spread_types() -> Iterator[str]:
    """Types with methods in another room of their crate: `reactor/exchange Exchange: serve/x`."""
    for name, crate in crates().items():
        for (home, kind), files in crate.spread_types().items():
            for each in files:
                if "/" in each and rust_room(each) != rust_room(home):
                    yield f"{name}/{home} {kind}: {each}"


def rust_room(file: str) -> str:
    """The room in which a file of a crate stands: a folder, or the file itself at its top."""
    return file.partition("/")[0]


#: What must not be, by its kind.
FAULTS: dict[str, Callable[[], Iterator[str]]] = {
    "arrow up": arrows_up,
    "in a large circle": in_large_circles,
    "name of a plug-in": names_of_plugins,
    "in a large circle of Rust": in_large_circles_of_rust,
    "methods in another room": spread_types,
}


def sizes() -> dict[str, int]:
    """Lines of each room: of Python, of each crate of Rust, of the tests and of the load lab."""
    found: dict[str, int] = {}
    for path in (ROOT / "poorhttp").rglob("*.py*"):
        if path.suffix in (".py", ".pyi"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            place = "top" if path.suffix == ".pyi" and not path.name.startswith("_") else room(name)
            found[place] = found.get(place, 0) + lines(path)
    for crate in (ROOT / "core").glob("*/Cargo.toml"):
        sources = [*crate.parent.glob("src/**/*.rs"), *crate.parent.glob("fuzz_targets/*.rs")]
        found[f"core/{crate.parent.name}"] = sum(map(lines, sources))
    for folder in ("tests", "loadtests"):
        found[folder] = sum(map(lines, (ROOT / folder).rglob("*.py")))
    return found


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def in_order(rooms: Iterable[str]) -> list[str]:
    """Rooms of Python from below, then other folders."""
    places = {name: place for place, name in enumerate(ORDER)}
    return sorted(rooms, key=lambda name: (places.get(name, len(ORDER)), name))


def print_sizes() -> None:
    """Print a line for each room with its size; for the core and the plug-ins, the sums."""
    found = sizes()
    of_core = sum(size for name, size in found.items() if name in ORDER)
    of_plugins = sum(size for name, size in found.items() if name.startswith("plugins"))
    for name in in_order(found):
        print(f"{found[name]:7,} {name}")
    print(f"{of_core:7,} lines of Python in the core, {of_plugins:,} in plug-ins")


def print_map() -> None:
    """Print rooms with sizes and arrows, then what is wrong."""
    found = sizes()
    arrows = between(graph(), room)
    print("Rooms from below: lines, and what each imports; ^ is an arrow up\n")
    for name in in_order(arrows):
        to = [f"^{each}" if is_up(name, each) else each for each in in_order(arrows[name])]
        print(f"{found.get(name, 0):7,} {name:18} {', '.join(to)}")
    for kind, faults in FAULTS.items():
        print(f"\nFaults, {kind}:", *(sorted(faults()) or ["none"]), sep="\n  ")
    for crate_name, crate in crates().items():
        print_crate(crate_name, crate)
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw(), encoding="utf-8")
    ARCHITECTURE.write_text(with_reactor(ARCHITECTURE.read_text(encoding="utf-8")), "utf-8")
    print(f"\nDrawn: {PICTURE.relative_to(ROOT)}, {ARCHITECTURE.relative_to(ROOT)}")


def draw() -> str:
    """The rooms as a picture, SVG: a bar for each size, arcs for arrows; arrows up in red."""
    arrows, found = between(graph(), room), sizes()
    names = in_order(arrows)[::-1]
    height = {name: 40 + 26 * place for place, name in enumerate(names)}
    drawn = []
    for name in names:
        width = found.get(name, 0) / 40
        drawn.append(f'<rect x="290" y="{height[name] - 9}" width="{width}" height="18"/>')
        label = f"{name} {found.get(name, 0):,}"
        drawn.append(f'<text x="280" y="{height[name] + 4}" text-anchor="end">{label}</text>')
        for to in sorted(arrows[name]):
            up = is_up(name, to)
            start, end = height[name] + 4, height[to] - 4
            far = 120 - 4 * abs(start - end) / 26 if up else 560 + abs(start - end) / 2
            edge = 130 if up else 540
            drawn.append(
                f'<path d="M{edge} {start} C{far} {start} {far} {end} {edge} {end}" '
                f'class="{"up" if up else "down"}"><title>{name} imports {to}</title></path>'
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="960" height="{60 + 26 * len(names)}">'
        "<style>text{font:13px sans-serif}rect{fill:#9bc}path{fill:none;stroke:#678;opacity:.6}"
        f".up{{stroke:#c00;stroke-width:2}}</style>{''.join(drawn)}</svg>\n"
    )


def with_reactor(page: str) -> str:
    """The page about the architecture, with the arrows between rooms of the reactor as they are.

    An arrow is left out if others lead there.
    """
    arrows = reduced(between(crates()["reactor"].paths(), rust_room))
    from_above = sorted(arrows, key=lambda room: (-len(reachable(arrows, room)), room))
    drawn = "".join(
        f"        {name} --> {to}\n" for name in from_above for to in sorted(arrows[name])
    )
    return re.sub(
        r"(?<=subgraph reactor_crate \[reactor\]\n).*?(?=    end\n)", drawn, page, flags=re.DOTALL
    )


def print_crate(name: str, crate: Crate) -> None:
    """Print the rooms of a crate with sizes and arrows, types over several files, and circles."""
    src = ROOT / "core" / name / "src"
    arrows = between(crate.paths(), rust_room)
    print(f"\nCrate {name}:")
    for each in sorted(arrows, key=lambda room: (len(reachable(arrows, room)), room)):
        files = [src / f"{each}.rs", *(src / each).rglob("*.rs")]
        size = sum(lines(path) for path in files if path.exists())
        print(f"{size:7,} {each:18} {', '.join(sorted(arrows[each]))}")
    for (home, kind), files_of in sorted(crate.spread_types().items()):
        print(f"  methods of {kind} ({home}) also in {', '.join(sorted(files_of))}")
    for how, graph in (("by paths", crate.paths()), ("with these methods", crate.graph())):
        for circle in circles(graph):
            if len(circle) > MOST_IN_A_CIRCLE:
                print(f"  circle {how}, {len(circle)}: {', '.join(circle)}")


if __name__ == "__main__":
    print_sizes() if sys.argv[1:] == ["sizes"] else print_map()
