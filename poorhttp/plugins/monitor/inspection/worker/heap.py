"""Memory of this process: what has grown since the last time, by type or by line.

By line if Python traces allocations (`tracemalloc`); otherwise objects are counted by their type.
Only containers are counted then, which is what the garbage collector knows: neither text nor
numbers.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    #: Number of objects, and their bytes.
    Amount = tuple[int, int]

#: Rows that are told.
MOST_ROWS = 40

#: Types whose size is known without calling a method that an application may have.
SIZED = (dict, list, set, tuple)


class Heap:
    """What was found last in this process."""

    def __init__(self) -> None:
        self._how = ""
        self._found: Mapping[str, Amount] = {}
        self._when = 0.0

    def collect(self) -> dict[str, Any]:
        """Return `how`, `since` (seconds; `None`: this is the first time) and `rows`.

        A row has `what`, `count`, `size` in bytes, and the growth of count and size. Rows are
        sorted by growth; at the first call, by size.
        """
        import _tracemalloc

        how = "tracemalloc" if _tracemalloc.is_tracing() else "gc"
        found = _by_line() if how == "tracemalloc" else _by_type()
        now = time.monotonic()
        since = now - self._when if self._how == how else None
        rows: list[dict[str, Any]] = []
        for what in found.keys() | self._found.keys() if since is not None else found:
            count, size = found.get(what, (0, 0))
            grew, size_grew = 0, 0
            if since is not None:
                before = self._found.get(what, (0, 0))
                grew, size_grew = count - before[0], size - before[1]
                if not (grew or size_grew):
                    continue
            sizes = {"size": size, "size_grew": size_grew}
            rows.append({"what": what, "count": count, "grew": grew, **sizes})
        # Allocations have a size; of most types only the number of objects is known.
        keys = ("size_grew", "size") if how == "tracemalloc" else ("grew", "size_grew", "count")
        rows.sort(key=lambda row: [row[key] for key in keys], reverse=True)
        self._how, self._found, self._when = how, found, now
        return {"how": how, "since": since, "rows": rows[:MOST_ROWS]}


#: That of this process.
heap = Heap()


def _by_line() -> dict[str, Amount]:
    import tracemalloc

    snapshot = tracemalloc.take_snapshot()
    own = tracemalloc.Filter(False, tracemalloc.__file__), tracemalloc.Filter(False, __file__)
    found = {}
    for each in snapshot.filter_traces(own).statistics("lineno"):
        frame = each.traceback[0]
        found[f"{frame.filename}:{frame.lineno}"] = each.count, each.size
    return found


def _by_type() -> dict[str, Amount]:
    counts: dict[type, int] = {}
    sizes: dict[type, int] = {}
    for each in gc.get_objects():
        kind = type(each)
        counts[kind] = counts.get(kind, 0) + 1
        if kind in SIZED:
            sizes[kind] = sizes.get(kind, 0) + sys.getsizeof(each)
    found: dict[str, Amount] = {}
    for kind, count in counts.items():
        # Several classes may have one name.
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        before = found.get(name, (0, 0))
        found[name] = before[0] + count, before[1] + sizes.get(kind, 0)
    return found
