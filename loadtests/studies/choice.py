"""Selection of servers or studies by the beginnings of their names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from loadtests.errors import LabError


class Named(Protocol):
    """A server, a setup, or whatever takes part."""

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
            names = "; ".join(one.name for one in known)
            raise LabError(f"no {kind} is called {beginning!r}. There are: {names}")
        found += [one for one in fitting if one not in found]
    return found
