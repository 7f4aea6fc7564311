"""Argument parser whose errors suggest the right spelling."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from poorhttp.config.suggestions import nearest


class Parser(argparse.ArgumentParser):
    """`argparse.ArgumentParser` that names the nearest command, choice or option after an error."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        """Parses; an unknown option is an error here, where the command's options are known."""
        found, rest = super().parse_known_args(args, namespace)
        for word in rest:
            if word.startswith("--"):
                name = word.partition("=")[0]
                self.error(f"there is no option {name}{hint(name, self._option_strings())}")
        return found, rest

    def _option_strings(self) -> list[str]:
        return [text for action in self._actions for text in action.option_strings]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            problem = f"there is no {value!r}{hint(str(value), action.choices)}"
            raise argparse.ArgumentError(action, problem)


def names(text: str) -> list[str]:
    """The value of an option that is a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def hint(word: str, words: Iterable[str], between: str = " ") -> str:
    """`; did you mean "X"?` if a word is similar, else all words; the rest of a sentence."""
    known = list(words)
    near = nearest(word, known)
    return f'; did you mean "{near}"?' if near else f". There are: {between.join(known)}"
