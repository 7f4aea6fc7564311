"""Argument parser whose errors suggest the right spelling; choice by the beginnings of names."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any, Protocol, TypeVar

from loadtests.errors import LabError


class Parser(argparse.ArgumentParser):
    """`argparse.ArgumentParser` that names the nearest command, choice or option after an error."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        """Parses; an unknown option is an error here, where the command's options are known.

        It is looked for before, or its value would be taken for something else.
        """
        known = () if self._subparsers else self._option_string_actions
        for word in takewhile(lambda word: word != "--", args or ()):
            name = word.partition("=")[0]
            if not known or not name.startswith("--") or " " in name:
                continue
            if not any(option.startswith(name) for option in known):
                self.error(f"there is no option {name}{hint(name, known)}")
        return super().parse_known_args(args, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            problem = f"there is no {value!r}{hint(str(value), action.choices)}"
            raise argparse.ArgumentError(action, problem)


def number(
    least: float,
    most: float = sys.float_info.max,
    kind: type[float] = float,
    problem: str = "must be from {least:g} to {most:g}",
) -> Callable[[str], Any]:
    """Reads the value of an option that is a number; `problem` says what others, {text}, are."""

    def read(text: str) -> float:
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(problem.format(text=text, least=least, most=most))
        return value

    read.__name__ = kind.__name__
    return read


_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)")


def _header(text: str) -> tuple[str, str]:
    """A header field, in Latin-1."""
    found = _FIELD.fullmatch(text)
    if found is None:
        problem = f"{text!r} is no header field: it is written 'NAME: VALUE'"
        raise argparse.ArgumentTypeError(problem)
    if found[1].lower() in ("content-length", "transfer-encoding"):
        raise argparse.ArgumentTypeError(f"{found[1]} is what the client says itself of a body")
    return found[1], found[2].strip()


def add_headers(add: Callable[..., Any]) -> None:
    """Adds the option for header fields of all requests."""
    told = "a header field of each request, in place of one of that name (repeatable)"
    how: dict[str, Any] = {"dest": "headers", "type": _header, "default": []}
    add("-H", "--header", action="append", metavar="'NAME: VALUE'", help=told, **how)


def names(text: str) -> list[str]:
    """The value of an option that is a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def hint(word: str, words: Iterable[str]) -> str:
    """`; did you mean "X"?` if a word is similar, else all words; the rest of a sentence."""
    known = list(words)
    near = nearest(word, known)
    return f'; did you mean "{near}"?' if near else f". There are: {' '.join(known)}"


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The most similar of the words, or None; ignores case, and `-` is `_`."""

    def plain(text: str) -> str:
        return text.lower().replace("-", "_").strip("_")

    known = {plain(right): right for right in words}
    found = difflib.get_close_matches(plain(word), known, n=1)
    return known[found[0]] if found else None


class Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def choose(kind: str, known: Sequence[N], beginnings: Iterable[str]) -> list[N]:
    """Those whose names begin so, in the order of the beginnings, each once.

    Raises LabError for a beginning that fits none; `kind` is what it should have been.
    """
    found: list[N] = []
    for beginning in beginnings:
        fitting = [one for one in known if one.name.startswith(beginning)]
        if not fitting:
            raise unknown(kind, beginning, [one.name for one in known])
        found += [one for one in fitting if one not in found]
    return found


def unknown(kind: str, name: str, known: Sequence[str], between: str = "; ") -> LabError:
    """The error about a name that nothing has: what there is, and the most similar of it."""
    near = nearest(name, known)
    hint = f'; did you mean "{near}"?' if near else ""
    return LabError(f"no {kind} is called {name!r}. There are: {between.join(known)}{hint}")
