"""The error log of this process, and the files behind both logs."""

from __future__ import annotations

import os
import sys

from poorhttp._core import Journal
from poorhttp.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from poorhttp.options import Settings

_journal: Journal | None = None
_stream: TextIO | None = None


def start(settings: Settings) -> Journal:
    """Open the error log that `settings` asks for.

    Raises:
        ConfigError: the file cannot be opened.
    """
    global _journal, _stream
    if settings.error_log == "-":
        _stream = sys.stderr
        # Not `sys.stderr.fileno()`: under pytest and in notebooks that is something else.
        _journal = Journal(2, settings.log_level)
    else:
        fd = _open(settings.error_log, settings.place("error_log"))
        _stream = open(fd, "a", buffering=1, encoding="utf-8", errors="backslashreplace")
        _journal = Journal(fd, settings.log_level)
    return _journal


def open_access_log(settings: Settings) -> int | None:
    """Return a descriptor for the access log, `None` if there shall be none.

    Raises:
        ConfigError: the file cannot be opened.
    """
    if settings.access_log is None:
        return None
    if settings.access_log == "-":
        return 1
    return _open(settings.access_log, settings.place("access_log"))


def _open(path: str, place: str) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except OSError as error:
        raise ConfigError(f"{place}: cannot open {path}: {error.strerror}") from error


def write(level: str, message: str) -> None:
    """Write a line of the level debug, info, warning or error."""
    if _journal is not None:
        _journal.write(level, message)


def exception(message: str, error: BaseException) -> None:
    """Write a line and the traceback of `error` below it."""
    import traceback

    write("error", f"{message}\n{''.join(traceback.format_exception(error))}")


def stream() -> TextIO:
    """Return the error log as a text stream: `wsgi.errors`."""
    return _stream if _stream is not None else sys.stderr
