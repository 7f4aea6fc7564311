"""Selection of servers or studies by the beginnings of their names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from loadtests.errors import LabError
from poorhttp.config.suggestions import nearest


class Named(Protocol):
    """A server, a setup, or whatever takes part."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def choose(
    kind: str, known: Sequence[N], beginnings: Iterable[str], between: str = "; "
) -> list[N]:
    """Those whose names begin so, in the order of the beginnings, each once.

    Raises LabError for a beginning that fits none; `kind` is what it should have been.
    """
    found: list[N] = []
    for beginning in beginnings:
        fitting = [one for one in known if one.name.startswith(beginning)]
        if not fitting:
            raise unknown(kind, beginning, [one.name for one in known], between)
        found += [one for one in fitting if one not in found]
    return found


def unknown(kind: str, name: str, known: Sequence[str], between: str = "; ") -> LabError:
    """The error about a name that nothing has: what there is, and the most similar of it."""
    near = nearest(name, known)
    hint = f'; did you mean "{near}"?' if near else ""
    return LabError(f"no {kind} is called {name!r}. There are: {between.join(known)}{hint}")
