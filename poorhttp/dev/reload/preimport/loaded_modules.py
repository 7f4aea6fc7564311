"""The modules of this process, in the order in which they were loaded, and where they lie."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def since(count: int) -> list[str]:
    """Return the names of the modules that came behind the first so many.

    The others are not even counted one by one: their names lie in memory that is shared with the
    process that we were forked from, and to look at one is to write to it.
    """
    return list(islice(reversed(sys.modules), max(0, len(sys.modules) - count)))[::-1]


def folders(names: Iterable[str]) -> set[str]:
    """Return the folders of modules, but for the standard library."""
    found = set()
    for name in names:
        if name.partition(".")[0] not in sys.stdlib_module_names:
            file = attributes(sys.modules.get(name)).get("__file__")
            if isinstance(file, str) and os.path.isabs(file):
                found.add(os.path.dirname(file))
    return found


def attributes(thing: object) -> dict[str, Any]:
    """Return what stands in a module or any other thing itself.

    It is not asked: some load what is behind them when they are looked at.
    """
    try:
        own: dict[str, Any] = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}
    return own
