"""The name of the distribution: `poorhttp` on PyPI is another project, ours is `poorhttpd`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from tests.testkit.server import ROOT

#: A command that installs the other project: its name behind a command of an installer in the same
#: line, or at the beginning of the next one.
WRONG_COMMAND = re.compile(
    r"""\b(?:pip3?|pipx|uv)\b[^\n`;|&]*?\b(?:install|add|download|wheel)\b
        (?:[^\n`;|&]*?(?<![\w./@-])|[\ \t]*\n\W*)
        poorhttp(?![\w/-]|\.\w)""",
    re.VERBOSE,
)
#: The other project with an extra of ours.
WRONG_EXTRA = re.compile(r"\bpoorhttp\[(?:dev|forms|gevent|lab|lint|pages|test)\b")

#: Folders that hold nothing of ours.
SKIPPED = {"target", "build", "dist", "node_modules", "results", "__pycache__"}


def texts(folder: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """All text files of the source, but this one."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        hidden = entry.name.startswith(".") and entry.name not in (".ci", ".dockerignore")
        if entry.is_symlink() or hidden or entry.name in SKIPPED:
            continue
        path = Path(entry.path)
        if entry.is_dir():
            yield from texts(path)
        elif path != Path(__file__).resolve():
            try:
                yield path, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def wrong(text: str) -> list[str]:
    """What in a text installs the other project."""
    return [match[0] for rule in (WRONG_COMMAND, WRONG_EXTRA) for match in rule.finditer(text)]


def test_no_text_says_to_install_the_other_project() -> None:
    found = {path.relative_to(ROOT).as_posix(): wrong(text) for path, text in texts()}
    assert not {path: lines for path, lines in found.items() if lines}
    assert {"README.md", "conf/poorhttp.service", "conf/container/Containerfile"} <= {*found}
