"""Calls an example under memory_profiler, in a process of its own: NAME CALLS.

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
from typing import Any
from wsgiref.util import setup_testing_defaults

from memory_profiler import LineProfiler

from loadtests.programs import ROOT
from loadtests.studies.memory.examples import Example, Line, named
from poorhttp.targets import dispatch


def profile(example: Example, calls: int) -> list[Line]:
    """The lines of a function after so many calls."""
    folder = ROOT / example.folder
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    module = importlib.import_module(example.module)
    application: Callable[..., Iterable[bytes]] = (
        dispatch.load(str(folder)) if example.table else module.application
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
        close = getattr(body, "close", None)
        if close:
            close()
    return [line for file, lines in profiler.code_map.items() for line in _told(file, lines)]


def _told(file: str, lines: Iterable[tuple[int, tuple[float, float, int] | None]]) -> list[Line]:
    told: list[Line] = []
    first = True
    for number, measured in lines:
        text = linecache.getline(file, number).rstrip("\n")
        if measured is None:
            told.append(Line(number, text, None, None, 0))
            continue
        grown, held, times = measured
        rise = None if first else round(grown * 2**20)
        told.append(Line(number, text, round(held * 2**20), rise, times))
        first = False
    return told


if __name__ == "__main__":
    # Whatever the libraries print is not the answer.
    with contextlib.redirect_stdout(io.StringIO()):
        found = profile(named(sys.argv[1]), int(sys.argv[2]))
    json.dump(found, sys.stdout)
