"""Docstrings as the manual shows them: indented examples are code, as in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def mark_examples(
    app: Sphinx, kind: str, name: str, described: object, options: object, lines: list[str]
) -> None:
    """Put a directive above blocks that are indented after an empty line."""
    shown: list[str] = []
    inside = False
    for number, line in enumerate(lines):
        indented = line.startswith("    ")
        if indented and not inside and number > 1 and not lines[number - 1]:
            before = next((text for text in reversed(shown) if text), "")
            if not before.startswith(" "):
                shown += [".. code-block:: python", ""]
                inside = True
        elif line and not indented:
            inside = False
        shown.append(line)
    lines[:] = shown


def setup(app: Sphinx) -> dict[str, bool]:
    """Read docstrings before their sections are."""
    app.connect("autodoc-process-docstring", mark_examples, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
