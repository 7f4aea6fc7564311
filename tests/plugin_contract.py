"""The table of names that plug-ins may import from the core, in docs/reference/plugins.md.

python -m tests.plugin_contract    writes the table for what our plug-ins and the example import

The page is part of the contract: look at what changes, and raise its version if a name goes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tests.support.installed import examples
from tests.testkit.server import ROOT

PAGE = ROOT / "docs/reference/plugins.md"
HEADING = "## What a plug-in may import"

#: A row of the table: a module, and the names in it that may be imported.
ROW = re.compile(r"^\| `(poorhttp\.[\w.]+)` \| (.+?) \|", re.MULTILINE)

#: Names of which the whole module may be used.
ALL = "all that are public"

#: Public names of the package, in docs/reference/api.md.
API = {"Server", "serve", "__version__"}

#: Names that no plug-in of ours uses.
FOR_OTHERS = {
    "poorhttp.config.options.option": {"WordList"},
    "poorhttp.targets.target": {
        *("CALLABLE", "CODE", "CONFIGURATION", "FILES", "PROGRAMS", "TEMPLATES")
    },
}

Names = dict[str, set[str]]


def listed() -> Names:
    """The names that the page lists, by their modules; empty for all of a module."""
    table = PAGE.read_text(encoding="utf-8").partition(HEADING)[2]
    return {
        module: set() if names == ALL else set(re.findall(r"`(\w+)`", names))
        for module, names in ROW.findall(table)
    }


def used() -> Names:
    """The names that our plug-ins and the example import, as `listed`."""
    found: Names = {module: set(names) for module, names in FOR_OTHERS.items()}
    whole = set()
    for _, source in sources():
        for module, name in of_core(source):
            found.setdefault(module, set()).add(name)
            if not name:
                whole.add(module)
    return {module: set() if module in whole else names for module, names in found.items()}


def sources() -> Iterator[tuple[str, str]]:
    """The name and the text of each file of a plug-in of ours, and of the example."""
    for pattern in ("*.py", "*.pyi"):
        for path in sorted((ROOT / "poorhttp/plugins").rglob(pattern)):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    (example,) = examples("plugins", "python")
    yield "docs/guides/plugins.md", example


def of_core(source: str) -> set[tuple[str, str]]:
    """What a plug-in imports from the core, also for types: modules, and the names in them.

    The name is empty if it is the module itself.
    """
    return {
        (module, name)
        for module, name in _imported(source)
        if module.startswith("poorhttp")
        and not module.startswith("poorhttp.plugins")
        and (module != "poorhttp" or name not in {*API, ""})
    }


def _imported(source: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("poorhttp"):
            package = str(node.module)
            for alias in node.names:
                module = f"{package}.{alias.name}"
                yield (module, "") if _is_module(package, module) else (package, alias.name)


def _is_module(package: str, module: str) -> bool:
    found = find_spec(package)
    is_package = found is not None and found.submodule_search_locations
    return bool(is_package) and find_spec(module) is not None


def table() -> str:
    """The rows for what is used, each with the first line of the module."""
    rows = []
    for module, names in sorted(used().items()):
        texts = ", ".join(f"`{name}`" for name in sorted(names)) or ALL
        first = (import_module(module).__doc__ or "").partition("\n")[0]
        rows.append(f"| `{module}` | {texts} | {first} |\n")
    return "".join(["| module | names | |\n|---|---|---|\n", *rows])


def write() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, mark, _ = page.partition("| module | names | |\n")
    assert mark, "the page has no table"
    Path(PAGE).write_text(before + table(), encoding="utf-8")


if __name__ == "__main__":
    write()
