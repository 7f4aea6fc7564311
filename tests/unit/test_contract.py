"""What plug-ins import from the core: only what docs/reference/plugins.md lists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.installed import examples
from tests.testkit.server import ROOT

#: A row of the table: a module, and the names in it that may be imported.
ROW = re.compile(r"^\| `(poorhttp\.[\w.]+)` \| (.+?) \|", re.MULTILINE)

#: Names of which the whole module may be used.
ALL = "all that are public"

#: Public names of the package, in docs/reference/api.md.
API = {"poorhttp": {"Server", "serve", "__version__"}}


@pytest.fixture(scope="module")
def listed() -> dict[str, set[str]]:
    """The names that the page lists, by their modules; empty for all."""
    page = (ROOT / "docs/reference/plugins.md").read_text(encoding="utf-8")
    found = {}
    for module, names in ROW.findall(page.partition("## What a plug-in may import")[2]):
        found[module] = set() if names == ALL else set(re.findall(r"`(\w+)`", names))
    return found


def imported(source: str) -> Iterator[tuple[str, str]]:
    """The names that are imported from the core, also for types: a module and a name in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                is_module = node.module.startswith("poorhttp") and is_package(node.module, whole)
                yield (whole, "") if is_module else (node.module, alias.name)


def is_package(package: str, module: str) -> bool:
    """Whether a package has a module of this name."""
    found = find_spec(package)
    return (
        found is not None
        and bool(found.submodule_search_locations)
        and find_spec(module) is not None
    )


def of_core(source: str) -> set[tuple[str, str]]:
    return {
        (module, name)
        for module, name in imported(source)
        if module.partition(".")[0] == "poorhttp"
        and not module.startswith("poorhttp.plugins")
        and (module, name) != ("poorhttp", "")
        and name not in API.get(module, ())
    }


def plug_ins() -> Iterator[Path]:
    """The files of our plug-ins."""
    for pattern in ("*.py", "*.pyi"):
        yield from (ROOT / "poorhttp/plugins").rglob(pattern)


def test_plug_ins_import_only_what_the_page_lists(listed: dict[str, set[str]]) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {module} {name}"
        for path in plug_ins()
        for module, name in sorted(of_core(path.read_text(encoding="utf-8")))
        if module not in listed or (name and listed[module] and name not in listed[module])
    ]
    assert wrong == []


def test_the_example_imports_only_what_the_page_lists(listed: dict[str, set[str]]) -> None:
    (module,) = examples("plugins", "python")
    for name, what in of_core(module):
        assert what in listed[name] or not what, f"{name} {what}"


def test_what_the_page_lists_is_there_and_used(listed: dict[str, set[str]]) -> None:
    """A plug-in of ours, or the example, imports each module; each name exists."""
    (example,) = examples("plugins", "python")
    texts = [*(path.read_text(encoding="utf-8") for path in plug_ins()), example]
    used = {module for text in texts for module, _ in of_core(text)}
    assert set(listed) - used == set()
    types = re.compile(r"^    class (\w+)|^    (\w+): TypeAlias", re.MULTILINE)
    for module, names in listed.items():
        loaded = import_module(module)
        source = Path(str(loaded.__file__))
        for_types = set()
        if source.suffix == ".py":
            found = types.findall(source.read_text(encoding="utf-8"))
            for_types = {name for pair in found for name in pair if name}
        missing = [name for name in names if not hasattr(loaded, name) and name not in for_types]
        assert missing == [], module
