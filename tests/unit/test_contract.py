"""What plug-ins import from the core: only what docs/reference/plugins.md lists."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from tests.plugin_contract import listed, of_core, sources, used

#: Declared for types only: `class Line(Protocol)`, or an alias.
TYPES = re.compile(r"^    class (\w+)|^    (\w+): TypeAlias", re.MULTILINE)


def test_plug_ins_import_only_what_the_page_lists() -> None:
    """If a name is to be new in the contract: `python -m tests.plugin_contract`."""
    known = listed()
    wrong = [
        f"{file}: {module} {name}"
        for file, source in sources()
        for module, name in sorted(of_core(source))
        if module not in known or (name and known[module] and name not in known[module])
    ]
    assert wrong == []


def test_what_the_page_lists_is_used_and_exists() -> None:
    assert listed() == used()
    for module, names in listed().items():
        source = Path(str(import_module(module).__file__))
        text = source.read_text(encoding="utf-8") if source.suffix == ".py" else ""
        types = {name for pair in TYPES.findall(text) for name in pair if name}
        missing = [name for name in names - types if not hasattr(import_module(module), name)]
        assert missing == [], module


def test_all_ways_to_import_are_seen() -> None:
    source = (
        "import poorhttp.errors, os\n"
        "from poorhttp import Server, logs\n"
        "from poorhttp.config import address as addresses\n"
        "if TYPE_CHECKING:\n    from poorhttp.config.settings import Settings\n"
        "def later():\n    from poorhttp.plugins.dev import options\n"
    )
    assert of_core(source) == {
        ("poorhttp.errors", ""),
        ("poorhttp.logs", ""),
        ("poorhttp.config.address", ""),
        ("poorhttp.config.settings", "Settings"),
    }
