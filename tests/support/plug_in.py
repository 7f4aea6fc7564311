"""Plug-ins of others, as pip installs them: metadata with entry points, and modules."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from poorhttp.config import registry as registries
from poorhttp.config import settings
from poorhttp.config.registry import Entry, registry


def install(folder: Path, name: str, points: Mapping[str, str], modules: Mapping[str, str]) -> None:
    """Install a distribution into a folder of Python's path.

    Args:
        folder: that one.
        name: of the distribution.
        points: entry points, a line `name = module:attribute` each, by their group without
            `poorhttp.`
        modules: texts of modules, by their names.
    """
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
    metadata = folder / f"{name}-1.2.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (metadata / "entry_points.txt").write_text(
        "".join(f"[poorhttp.{group}]\n{lines}\n" for group, lines in points.items())
    )


@contextmanager
def known(folder: Path, monkeypatch: pytest.MonkeyPatch, *, root: bool = False) -> Iterator[None]:
    """Have this process look for plug-ins in a folder, and forget them at the end."""
    entries: dict[str, dict[str, Entry]] = {
        group: dict(known) for group, known in registry.entries.items()
    }
    options = dict(settings.OPTIONS)
    loaded = set(sys.modules)
    monkeypatch.setattr(registries, "PATH", (str(folder), *registries.PATH))
    monkeypatch.setattr(registries, "STARTED_BY_ROOT", root)
    monkeypatch.setattr(registry, "_others", None)
    monkeypatch.setattr(registry, "entries", entries)
    try:
        yield
    finally:
        for name in set(settings.OPTIONS) - set(options):
            del settings.OPTIONS[name]
        for name in set(sys.modules) - loaded:
            del sys.modules[name]
