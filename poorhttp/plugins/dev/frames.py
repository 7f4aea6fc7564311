"""Removes the server's own frames from tracebacks, so that they begin in the application."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType

from poorhttp.errors import ApplicationError
from poorhttp.logs.frames import SERVER_FOLDER, is_importing, with_sources
from poorhttp.logs.source_errors import name_file


def strip_frames(error: BaseException) -> BaseException:
    """Remove frames of the server, and of the import system, from an exception; modifies it.

    Frames of libraries before the application's first frame are removed too. Frames after the
    application's stay, because they show what it has called wrongly.

    Returns:
        The exception to show: the cause of an ApplicationError, if the application has raised it.
    """
    for each in _chain(error):
        name_file(each)
        # The message of an ApplicationError says everything.
        whole = isinstance(each, ApplicationError)
        each.__traceback__ = _stripped(each.__traceback__, everywhere=whole)
    deepest: BaseException | None = error
    while isinstance(deepest, ApplicationError):
        deepest = deepest.__cause__
    if isinstance(deepest, SyntaxError) or (deepest is not None and deepest.__traceback__):
        return deepest
    if isinstance(error, ApplicationError):
        # The message says more than the cause, for example a suggestion.
        error.__cause__ = None
        error.__suppress_context__ = True
    return error


def source_folders(error: BaseException) -> list[str]:
    """Return the folders of the files in the traceback of an exception."""
    files = {error.filename} if isinstance(error, SyntaxError) and error.filename else set()
    traceback = error.__traceback__
    while traceback is not None:
        files.add(traceback.tb_frame.f_code.co_filename)
        traceback = traceback.tb_next
    return sorted({os.path.dirname(file) for file in files if os.path.isabs(file)})


def format_traceback(error: BaseException) -> str:
    """Return the traceback of an exception as Python writes it."""
    try:
        import traceback

        return "".join(with_sources(lambda: traceback.format_exception(strip_frames(error))))
    except Exception as another:
        return f"{type(error).__name__} (no traceback: {type(another).__name__})\n"


def group_members(error: BaseException) -> tuple[BaseException, ...]:
    """Return the exceptions of an exception group; empty for other exceptions."""
    found = getattr(error, "exceptions", ())
    # Python 3.10 has no groups, and other exceptions may have an attribute of this name.
    whole = isinstance(found, tuple) and all(isinstance(each, BaseException) for each in found)
    return found if whole else ()


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, its causes, contexts and group members."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, each.__context__, *group_members(each)]


def _stripped(traceback: TracebackType | None, *, everywhere: bool) -> TracebackType | None:
    entries = []
    inside = False
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if is_importing(file):
            # The next frame is that of an imported module.
            inside = False
        elif inside or not file.startswith(SERVER_FOLDER):
            entries.append(traceback)
            inside = not everywhere
        traceback = traceback.tb_next
    # Skip frames of a framework that has called the application.
    files = [entry.tb_frame.f_code.co_filename for entry in entries]
    del entries[: next((place for place, file in enumerate(files) if not is_library(file)), 0)]
    rest: TracebackType | None = None
    for entry in reversed(entries):
        rest = TracebackType(rest, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return rest


def is_library(file: str) -> bool:
    """Tell whether a file belongs to Python or to an installed distribution."""
    return file.startswith("<frozen ") or short_path(file) != file


def short_path(file: str) -> str:
    """Return the path of a library's file below the folder of libraries, `flask/app.py`."""
    for folder in library_folders():
        if file.startswith(folder):
            return file[len(folder) :]
    return file


def library_folders() -> list[str]:
    """Return the folders of libraries, each with a slash at its end; the longest first."""
    import sysconfig  # needed only after an error

    names = ("purelib", "platlib", "stdlib", "platstdlib")
    known = {sysconfig.get_path(name) for name in names}
    folders = known | {os.path.realpath(folder) for folder in known}
    return sorted((folder + os.sep for folder in folders), key=len, reverse=True)
