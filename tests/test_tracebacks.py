"""Tracebacks in the terminal, and where there is none."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.server import ROOT, run
from tests.terminal import Terminal

SHOW = "tests/apps/shown.py"
ESCAPE = "\x1b"


def in_pipe(name: str, env: Mapping[str, str] | None = None) -> str:
    done = run(sys.executable, SHOW, name, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return done.stderr


def in_terminal(name: str, env: Mapping[str, str] | None = None) -> Terminal:
    """The terminal in which it was shown."""
    show = [sys.executable, SHOW, name]
    with Terminal(show, controls=True, columns=200, rows=400, env=env) as terminal:
        assert terminal.ended() == 0
    return terminal


SHOWN = {
    "/before": "ValueError: before, with",
    "/deep": "RecursionError",
    "/chained": "KeyError: 'chained'",
    "/leave": "SystemExit: 7",
    "/surrogate": "half \\udcff of it <b>",
    "/unspeakable": "Unspeakable: <exception str() failed>",
    "/library": "json.decoder.JSONDecodeError",
    "/syntax": "SyntaxError: invalid syntax",
    "/command": "ValueError: clear \\x1b[2J all",
    "/large": "ValueError: vvv",
}


@pytest.mark.parametrize("name", SHOWN)
def test_everywhere(tmp_path: Path, name: str) -> None:
    pipe, terminal = in_pipe(name), in_terminal(name)
    for text in (pipe, terminal.text()):
        assert text.startswith(f"GET {name}: it failed\n")
        assert text.endswith("\n")
        assert SHOWN[name] in text
        assert ESCAPE not in text
    assert terminal.is_coloured()
    assert "Traceback (most recent call last)" in pipe
    # Of the locals nothing.
    assert "hhhhh" not in pipe + terminal.written


def test_own_frames() -> None:
    terminal = in_terminal("/before")
    text = terminal.text()
    own = terminal.style(text.index("> tests/apps/raising.py:"))
    assert (own.fg, own.bold) == ("cyan", True)
    assert re.search(r"  >   \d+ \|     raise ValueError\(f\"before", text)
    file = re.search(r"> (\S+):(\d+) in before", text)
    assert file
    line = (ROOT / file[1]).read_text().splitlines()[int(file[2]) - 1]
    assert 'raise ValueError(f"before' in line


def test_frames_of_libraries() -> None:
    terminal = in_terminal("/library")
    # The screen does not know faint letters.
    lines = terminal.written.splitlines()
    found = [line for line in lines if "json/decoder.py:" in line]
    assert found
    assert all(line.startswith(f"{ESCAPE}[2m  ") for line in found)
    assert "raise JSONDecodeError" not in terminal.text()


def test_folded() -> None:
    text = in_terminal("/deep").text()
    assert text.count("in deep\n") < 10
    assert "... and so on" in text


def test_chain_and_group() -> None:
    text = in_terminal("/chained").text()
    assert (
        text.index("\nValueError: before") < text.index("direct cause") < text.index("\nKeyError")
    )
    if sys.version_info >= (3, 11):
        text = in_terminal("/grouped").text()
        assert text.index("1 of 2:") < text.index("ValueError: before") < text.index("2 of 2:")


def test_large() -> None:
    text = in_terminal("/large").written
    assert len(text) < 10_000
    assert "characters more" in text
    # Whoever reads it from a file misses nothing.
    assert len(in_pipe("/large")) > 1_000_000


def test_syntax_error() -> None:
    text = in_terminal("/syntax").text()
    assert re.search(r'File "/nowhere/shop.py", line 2\n +b = = 2\n +\^\nSyntaxError', text)


def test_colour() -> None:
    colour = re.compile(r"\x1b\[[\d;]*3\d")
    assert in_terminal("/before").is_coloured()
    assert not colour.search(in_terminal("/before", {"NO_COLOR": "1"}).written)
    assert colour.search(in_pipe("/before", {"FORCE_COLOR": "1", "TERM": "xterm-256color"}))
    assert ESCAPE not in in_pipe("/before", {"NO_COLOR": "1"})
