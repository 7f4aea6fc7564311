"""Tracebacks in the terminal: own and library frames, folding, groups, colours."""

from __future__ import annotations

import re
import sys
from functools import cache

import pexpect
import pytest

from tests.testkit.client import HANG
from tests.testkit.server import ROOT, environment, run

SHOW = "tests/apps/shown.py"
ESCAPE = "\x1b"


@cache
def piped(*names: str, **env: str) -> list[str]:
    """What is printed to a pipe, for each name."""
    done = run(sys.executable, SHOW, *names, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return done.stderr.split("\f")


@cache
def displayed(*names: str, **env: str) -> list[str]:
    """What is printed to a terminal, for each name."""
    variables = {**environment(env), "TERM": "xterm-256color"}
    words = [SHOW, *names]
    child = pexpect.spawn(sys.executable, words, HANG, cwd=ROOT, env=variables, encoding="utf-8")
    shown = child.read()
    child.close()
    assert child.exitstatus == 0
    return shown.replace("\r\n", "\n").split("\f")


def in_pipe(name: str) -> str:
    return piped(*SHOWN)[[*SHOWN].index(name)]


def in_terminal(name: str) -> str:
    return displayed(*SHOWN)[[*SHOWN].index(name)]


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


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
    "/mako": "AttributeError",
    **({"/grouped": "ValueError: before, with"} if sys.version_info >= (3, 11) else {}),
}


@pytest.mark.parametrize("name", SHOWN)
def test_everywhere(name: str) -> None:
    pipe, terminal = in_pipe(name), in_terminal(name)
    for text in (pipe, plain(terminal)):
        assert text.startswith(f"GET {name}: it failed\n")
        assert text.endswith("\n")
        assert SHOWN[name] in text
        assert ESCAPE not in text
    assert f"{ESCAPE}[" in terminal
    assert "Traceback (most recent call last)" in pipe
    # Of the locals nothing.
    assert "hhhhh" not in pipe + terminal


def test_own_frames() -> None:
    text = in_terminal("/before")
    assert f"{ESCAPE}[1;36m> tests/apps/raising.py:" in text
    assert re.search(r"  >   \d+ \|     raise ValueError\(f\"before", plain(text))
    file = re.search(r"> (\S+):(\d+) in before", plain(text))
    assert file
    line = (ROOT / file[1]).read_text().splitlines()[int(file[2]) - 1]
    assert 'raise ValueError(f"before' in line


def test_frames_of_libraries() -> None:
    lines = in_terminal("/library").splitlines()
    found = [line for line in lines if "json/decoder.py:" in line]
    assert found
    assert all(line.startswith(f"{ESCAPE}[2m  ") for line in found)
    assert "raise JSONDecodeError" not in plain("\n".join(lines))


def test_folded() -> None:
    text = plain(in_terminal("/deep"))
    assert text.count("in deep\n") < 10
    assert "... and so on" in text


def test_chain_and_group() -> None:
    text = plain(in_terminal("/chained"))
    places = [text.index(each) for each in ("\nValueError: before", "direct cause", "\nKeyError")]
    assert places == sorted(places)
    if sys.version_info >= (3, 11):
        text = plain(in_terminal("/grouped"))
        assert text.index("1 of 2:") < text.index("ValueError: before") < text.index("2 of 2:")


def test_large() -> None:
    assert len(in_terminal("/large")) < 10_000
    assert "characters more" in in_terminal("/large")
    # Whoever reads it from a file misses nothing.
    assert len(in_pipe("/large")) > 1_000_000


def test_template() -> None:
    """The line of a template, where the traceback has only lines of generated code."""
    lines = "In the template basket.html:2\n       1 | one\n  >    2 | ${fruit.kind}\n"
    assert in_pipe("/mako").endswith(lines)
    text = in_terminal("/mako")
    assert plain(text).endswith(lines)
    assert f"{ESCAPE}[31m  >    2 | ${{fruit.kind}}" in text


def test_colour() -> None:
    colour = re.compile(r"\x1b\[[\d;]*3\d")
    assert colour.search(in_terminal("/before"))
    assert not colour.search(displayed("/before", NO_COLOR="1")[0])
    assert colour.search(piped("/before", FORCE_COLOR="1", TERM="xterm-256color")[0])
    assert ESCAPE not in piped("/before", NO_COLOR="1")[0]
