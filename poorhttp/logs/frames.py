"""Tracebacks of applications: without frames of the server, and whatever import hooks they have."""

from __future__ import annotations

import os

from poorhttp.errors import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Folder of the server's modules.
SERVER_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def application_traceback(error: BaseException) -> str:
    """Return the traceback of an application's exception without the server's frames.

    Begins with a newline; empty if there is no frame of the application. Does not modify `error`.
    """
    import traceback

    while isinstance(error, Failure) and error.__cause__ is not None:
        error = error.__cause__
    frames = with_sources(lambda: traceback.extract_tb(error.__traceback__))
    frames = [frame for frame in frames if not frame.filename.startswith(SERVER_FOLDER)]
    frames = [frame for frame in frames if not is_importing(frame.filename)]
    if not frames and not isinstance(error, SyntaxError):
        return ""
    lines = traceback.format_list(frames) + traceback.format_exception_only(error)
    return "\nTraceback (most recent call last):\n" + "".join(lines)


def with_sources(read: Callable[[], Any]) -> Any:
    """Return what `read` makes of a traceback, without the lines that cannot be had.

    `linecache` lets the error of an import hook through, as of an archive with a source in latin-1.
    """
    try:
        return read()
    except Exception:
        import linecache

        # Of one element: the hook has not been asked yet, or has failed.
        for file in [file for file, entry in linecache.cache.items() if len(entry) == 1]:
            try:
                linecache.updatecache(file)
            except Exception:
                linecache.cache[file] = 0, None, [], file
        return read()


def is_importing(file: str) -> bool:
    """Tell whether a file belongs to the import system: Python leaves it out of an ImportError."""
    return file.startswith("<frozen importlib") or file.endswith("importlib/__init__.py")
