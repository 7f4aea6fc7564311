"""Prints the traceback of each named failure of `tests.apps.raising`, and a form feed."""

from __future__ import annotations

import json
import os
import sys

sys.path.insert(0, os.getcwd())

from poorhttp.plugins.dev.terminal_tracebacks import show
from tests.apps import raising


def library() -> None:
    json.loads("{")


def syntax() -> None:
    compile("a = 1\nb = = 2\n", "/nowhere/shop.py", "exec")


def large() -> None:
    raise ValueError("v" * 1_000_000)


def mako() -> None:
    from mako.template import Template

    Template("one\n${fruit.kind}\n", uri="basket.html").render()


def command() -> None:
    raise ValueError("clear \x1b[2J all")


def main(name: str) -> None:
    own = {
        "/library": library,
        "/syntax": syntax,
        "/large": large,
        "/command": command,
        "/mako": mako,
    }
    try:
        {**raising.FAILURES, **own}[name]()
    except BaseException as error:
        show(f"GET {name}: it failed", error, lambda file: "/tests/" in file)


for word in sys.argv[1:]:
    main(word)
    print("\f", end="", file=sys.stderr, flush=True)
