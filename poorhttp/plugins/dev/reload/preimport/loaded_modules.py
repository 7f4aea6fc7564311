"""Modules of this process in the order of their loading, and the folders of their files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from itertools import islice

from poorhttp.plugins.dev.reload.watch.snapshot import archive_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def since(count: int) -> list[str]:
    """Return the names of the modules loaded after the first `count`.

    The others are not iterated over: their names are in memory shared with the parent process, and
    reading an object writes its reference count.
    """
    return list(islice(reversed(sys.modules), max(0, len(sys.modules) - count)))[::-1]


def folders(names: Iterable[str]) -> set[str]:
    """Return the folders of modules, except those of the standard library."""
    found = set()
    for name in names:
        if name.partition(".")[0] not in sys.stdlib_module_names:
            file = attributes(sys.modules.get(name)).get("__file__")
            # Those of archives are relative if the entry of the path is.
            if isinstance(file, str) and (os.path.isabs(file) or archive_of(os.path.abspath(file))):
                found.add(os.path.dirname(os.path.abspath(file)))
    return found


def attributes(thing: object) -> dict[str, Any]:
    """Return the attribute dictionary of a module or any other object.

    Without `getattr`: lazy modules would load themselves.
    """
    try:
        own: dict[str, Any] = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}
    return own
