"""An application that raises every kind of exception, for tests of error pages."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable, Iterator
from typing import NoReturn

from tests.apps.basics import TEXT, Environ, Pieces, StartResponse


class Broken:
    """A value that cannot be shown."""

    def __repr__(self) -> str:
        raise ValueError("it has no repr")


class Huge:
    """A value that is too large to be shown."""

    def __repr__(self) -> str:
        return "h" * 5_000_000


class Unspeakable(Exception):
    """An exception that says nothing."""

    def __str__(self) -> str:
        raise RuntimeError("it has no str")


def before() -> NoReturn:
    basket = {"apples": 41}
    broken, huge, text = Broken(), Huge(), "t" * 5_000_000
    raise ValueError(f"before, with {len(basket)} {type(broken)} {type(huge)} {len(text)}")


def deep(level: int = 0) -> int:
    return deep(level + 1)


def chained() -> NoReturn:
    try:
        before()
    except ValueError as error:
        raise KeyError("chained") from error


def grouped() -> NoReturn:
    group: Callable[[str, list[Exception]], Exception] | None = getattr(
        builtins, "ExceptionGroup", None
    )
    if group is None:
        raise ValueError("grouped, as far as this Python can")
    try:
        before()
    except ValueError as error:
        raise group("grouped", [error, KeyError("another")]) from None


def leave() -> NoReturn:
    sys.exit(7)


def surrogate() -> NoReturn:
    raise ValueError("half \udcff of it <b>")


def unspeakable() -> NoReturn:
    raise Unspeakable


def latin() -> None:
    source = "# -*- coding: utf-8 -*-\ndef call():\n    raise ValueError('\udce9')\n"
    path = os.path.join(os.environ["RAISING_FOLDER"], "latin.py")
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(source)
    scope: dict[str, Callable[[], None]] = {}
    exec(compile(source.encode("ascii", "replace"), path, "exec"), scope)
    scope["call"]()


def middle() -> Iterator[bytes]:
    yield b"some"
    raise ValueError("in the middle")


class Closing:
    """A body whose end is not well."""

    def __iter__(self) -> Iterator[bytes]:
        return iter([b"all"])

    def close(self) -> NoReturn:
        raise ValueError("in close")


FAILURES: dict[str, Callable[[], object]] = {
    "/before": before,
    "/deep": deep,
    "/chained": chained,
    "/grouped": grouped,
    "/leave": leave,
    "/surrogate": surrogate,
    "/unspeakable": unspeakable,
    "/latin": latin,
    "/none": lambda: None,
}
BODIES: dict[str, Callable[[], Pieces]] = {"/middle": middle, "/close": Closing}


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    path = environ["PATH_INFO"]
    if path in FAILURES:
        return FAILURES[path]()  # type: ignore[return-value]
    start_response("200 OK", [TEXT])
    if path == "/after":
        raise ValueError("after start_response")
    return BODIES[path]() if path in BODIES else [b"fine"]
