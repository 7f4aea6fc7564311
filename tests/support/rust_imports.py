"""Which file of a Rust crate names items of which other file, read from `use` and paths."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from itertools import islice
from pathlib import Path

#: Names by which a file refers to another of its crate, and what stands between braces.
PATHS = re.compile(r"\b(crate|super)::((?:\w+::)*)(\w+|\{)")
COMMENTS = re.compile(r"//.*")
TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{.*?^\}", re.MULTILINE | re.DOTALL)


def braces(text: str, start: int) -> str:
    """What stands between the brace before `start` and its counterpart."""
    depth = 1
    for end, letter in enumerate(text[start:], start):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if not depth:
            return text[start:end]
    return ""


def branches(text: str) -> Iterator[list[str]]:
    """The paths of a list in a `use`, `a::{b, c::d}, e`: `a b`, `a c d` and `e`."""
    while found := re.match(r"\s*((?:\w+::)*)(\w+|\{|\*)", text):
        above = found[1].split("::")[:-1]
        end = found.end()
        if found[2] == "{":
            inner = braces(text, end)
            yield from ([*above, *rest] for rest in branches(inner))
            end += len(inner) + 1
        else:
            yield [*above, found[2]]
        text = text[end:].partition(",")[2]


def named(source: str, module: list[str]) -> Iterator[list[str]]:
    """The paths from the root of the crate that a file names. Its tests are not looked at."""
    text = TESTS.sub("", COMMENTS.sub("", source))
    for found in PATHS.finditer(text):
        above = module[:-1] if found[1] == "super" else []
        above += found[2].split("::")[:-1]
        if found[3] == "{":
            yield from ([*above, *rest] for rest in branches(braces(text, found.end())))
        else:
            yield [*above, found[3]]


def nearest(parts: list[str], separator: str, known: Container[str]) -> set[str]:
    """The longest beginning of a path that is known; the path may go on to an item in it."""
    above = (separator.join(parts[:end]) for end in range(len(parts), 0, -1))
    return set(islice((each for each in above if each in known), 1))


def rust_graph(src: Path) -> dict[str, set[str]]:
    """Which file of a crate names items of which; the root of the crate knows all, and is left out.

    A file is called by its path without suffix, `mod.rs` by its folder.
    """
    files = {
        path.relative_to(src).with_suffix("").as_posix().removesuffix("/mod"): path
        for path in src.rglob("*.rs")
        if "tests" not in path.parts and path.name != "lib.rs"
    }
    graph: dict[str, set[str]] = {name: set() for name in files}
    for name, path in files.items():
        for parts in named(path.read_text(encoding="utf-8"), name.split("/")):
            graph[name] |= nearest(parts, "/", files) - {name}
    return graph
