"""Runs tasks of the main process, each by itself: one that fails is logged, the others run."""

from __future__ import annotations

import time
from collections.abc import Callable

from poorhttp import logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import TypeVarTuple, Unpack

    Arguments = TypeVarTuple("Arguments")

#: Seconds after which a failure that repeats is logged again.
REPEATED = 60.0

#: When each failure was last logged, by the task and the text of the exception.
_logged: dict[tuple[str, str], float] = {}


def attempt(
    what: str, task: Callable[[Unpack[Arguments]], object], *arguments: Unpack[Arguments]
) -> bool:
    """Call a function; log its exception as that of the task `what`, and return `False`.

    Descriptors or memory may have run out, or the server's own files have been removed.
    """
    try:
        task(*arguments)
        return True
    except Exception as error:
        log_failure(what, error)
        return False


def log_failure(what: str, error: BaseException) -> None:
    """Log that the task `what` has failed, unless the same was logged a short time ago."""
    key, now = (what, repr(error)), time.monotonic()
    if now - _logged.get(key, -REPEATED) >= REPEATED:
        _logged[key] = now
        logs.exception(f"{what} failed; the main process goes on", error)
