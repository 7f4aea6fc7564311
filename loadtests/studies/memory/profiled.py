"""Calls an example application under memory_profiler, in a process of its own: NAME CALLS.

Writes its lines as a JSON array.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import linecache
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from wsgiref.util import setup_testing_defaults

from loadtests.programs import ROOT


class Example(NamedTuple):
    """A function of a module in `folder`, and the path at which it is called.

    The application is the folder's dispatch table, or `application` of the module. `package` is the
    distribution it needs.
    """

    name: str
    folder: str
    module: str
    function: str
    target: str = "/"
    table: bool = False
    package: str = ""


EXAMPLES = (
    Example("light", "apps/lightheavy", "light", "light", "/light", table=True),
    Example("heavy", "apps/lightheavy", "heavy", "heavy", "/heavy", table=True),
    Example("light, bare", "apps/lightheavy", "bare", "light"),
    Example("page of 10 KB", "apps/page", "app", "application"),
    Example("Flask", "apps/flaskapp", "app", "hello", package="flask"),
)


class Line(NamedTuple):
    """Bytes held at most after it, and by how much they grew in all its runs.

    Both are None if it never ran; for the first line the growth is, too: it is counted from there.
    """

    number: int
    text: str
    held: int | None
    grown: int | None
    runs: int


def profile(example: Example, calls: int) -> list[Line]:
    """The lines of a function after so many calls."""
    # Only here: the lab itself does without them.
    from memory_profiler import LineProfiler

    from poorhttp import dispatch

    folder = ROOT / example.folder
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    module = importlib.import_module(example.module)
    application: Callable[..., Iterable[bytes]] = (
        dispatch.Application(importlib.import_module("dispatch_table"))
        if example.table
        else module.application
    )
    profiler = LineProfiler(backend="psutil")
    profiler.add_function(getattr(module, example.function))
    for _ in range(calls):
        environ: dict[str, Any] = {"PATH_INFO": example.target}
        setup_testing_defaults(environ)
        with profiler:
            body = application(environ, lambda *_: lambda _: None)
            for _ in body:
                pass
        if close := getattr(body, "close", None):
            close()
    return [line for file, lines in profiler.code_map.items() for line in _told(file, lines)]


def _told(file: str, lines: Iterable[tuple[int, tuple[float, float, int] | None]]) -> list[Line]:
    told: list[Line] = []
    for number, measured in lines:
        text = linecache.getline(file, number).rstrip("\n")
        if measured is None:
            told.append(Line(number, text, None, None, 0))
            continue
        grown, held, runs = measured
        rise = round(grown * 2**20) if any(line.runs for line in told) else None
        told.append(Line(number, text, round(held * 2**20), rise, runs))
    return told


if __name__ == "__main__":
    known = {example.name: example for example in EXAMPLES}
    # Whatever the libraries print is not the answer.
    with contextlib.redirect_stdout(io.StringIO()):
        found = profile(known[sys.argv[1]], int(sys.argv[2]))
    json.dump(found, sys.stdout)
