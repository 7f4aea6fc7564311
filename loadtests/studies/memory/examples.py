"""The example applications whose memory is measured by line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Example:
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


class Line(NamedTuple):
    """Bytes held at most after it, and by how much they grew in all its runs.

    Both are None if it never ran; for the first line the growth is, too: it is counted from there.
    """

    number: int
    text: str
    held: int | None
    grown: int | None
    runs: int


EXAMPLES = (
    Example("light", "apps/lightheavy", "light", "light", "/light", table=True),
    Example("heavy", "apps/lightheavy", "heavy", "heavy", "/heavy", table=True),
    Example("light, bare", "apps/lightheavy", "bare", "light"),
    Example("page of 10 KB", "apps/page", "app", "application"),
    Example("Flask", "apps/flaskapp", "app", "hello", package="flask"),
)


def named(name: str) -> Example:
    """The example of this name."""
    return {example.name: example for example in EXAMPLES}[name]
