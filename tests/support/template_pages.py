"""Folders of template pages: written, changed and broken by tests."""

from __future__ import annotations

import os
from pathlib import Path

#: Pages by their names, and the line that the log names.
FAILING = {
    "plain.html": ("one\ntwo\n${1 / 0}\n", "plain.html:3: ${1 / 0}"),
    "block.html": ("<%\n  a = 1\n\n  b = a / 0\n%>\n", "block.html:4: b = a / 0"),
    "control.html": (
        "a\n% for x in range(2):\n${x}\n${1 / x}\n% endfor\n",
        "control.html:4: ${1 / x}",
    ),
    "module.html": ("a\n<%!\n  b = 1 / 0\n%>", "module.html:3: b = 1 / 0"),
    "def.html": ("<%def name='f(x)'>\n\n${1 / x}</%def>\n${f(0)}", "def.html:3: ${1 / x}</%def>"),
    "undefined.html": ("\n${nobody}", "undefined.html:2: ${nobody}"),
    "include.html": ("\n<%include file='_bad.html'/>", "_bad.html:2: ${1 / 0}"),
    "inherit.html": ("<%inherit file='_bad.html'/>", "_bad.html:2: ${1 / 0}"),
    "missing.html": ("\n<%include file='none.html'/>", "missing.html:2: <%include"),
    "outside.html": ("\n<%include file='../../etc/passwd'/>", "outside.html:2: <%include"),
    "expression.html": ("\n${1 +}", "expression.html:2: ${1 +}"),
    "code.html": ("\n<%\n  a = 1\n  b = = 2\n%>", "code.html:4: b = = 2"),
    "tag.html": ("\n\n<%nothing/>", "tag.html:3: <%nothing/>"),
    "unclosed.html": ("% if True:\n a", "unclosed.html:1: % if True:"),
    "break.html": ("\n<%\n  break\n%>", "break.html:3: break"),
    "type.html": ("\n<% response.headers['A'] = 'a\\nb' %>", "type.html:2: <% response.headers"),
}


def write(folder: Path, pages: dict[str, str]) -> None:
    """Write pages by their names below a folder."""
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def set_page(path: Path, text: str) -> None:
    """Write a page as an editor does, with another time than before."""
    draft = path.with_suffix(".new")
    draft.write_text(text)
    os.replace(draft, path)
