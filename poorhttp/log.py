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


class ErrorLog:
    """Where this process reports what is worth telling a person.

    Attributes:
        journal: writes lines; Rust and Python share it.
        stream: the same file as a text stream, which is `wsgi.errors`.
    """

    journal: Journal | None = None
    stream: TextIO = sys.stderr

    def open(self, settings: Settings) -> Journal:
        """Open the file that `settings` asks for.

        Raises:
            ConfigError: it cannot be opened.
        """
        if settings.error_log == "-":
            self.stream = sys.stderr
            # Not `sys.stderr.fileno()`: under pytest and in notebooks that is something else.
            self.journal = Journal(_standard_error(), settings.log_level)
        else:
            fd = _open(settings.error_log, settings.place("error_log"))
            self.stream = os.fdopen(fd, "a", 1, encoding="utf-8", errors="backslashreplace")
            self.journal = Journal(fd, settings.log_level)
        return self.journal


#: The error log of this process.
error_log = ErrorLog()


def write(level: str, message: str) -> None:
    """Write a line of the level debug, info, warning or error."""
    if error_log.journal is not None:
        error_log.journal.write(level, message)


def exception(message: str, error: BaseException) -> None:
    """Write a line and the traceback of `error` below it."""
    try:
        # When it is needed: it is large.
        import traceback

        text = "".join(traceback.format_exception(error))
    except BaseException as another:
        text = f"{type(error).__name__} (its traceback cannot be had: {type(another).__name__})"
    write("error", f"{message}\n{text}")


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


def _standard_error() -> int:
    try:
        os.fstat(2)
        return 2
    except OSError:
        # We were started without one. What is written must not end up in whatever is opened next.
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def _open(path: str, place: str) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except OSError as error:
        raise ConfigError(f"{place}: cannot open {path}: {error.strerror}") from error
