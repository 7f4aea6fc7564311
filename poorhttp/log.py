"""The error log of this process, and the files behind both logs."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager

from poorhttp._core import Journal
from poorhttp.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
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

    @property
    def opened(self) -> Journal:
        """The journal, which is open."""
        assert self.journal is not None
        return self.journal

    @contextmanager
    def tracing_crashes(self) -> Iterator[None]:
        """Have a crash of this process, or of one forked from it, leave Python's traceback here.

        A program that has turned on `faulthandler` itself keeps its own.
        """
        import faulthandler

        if faulthandler.is_enabled():
            yield
            return
        try:
            faulthandler.enable(self.stream, all_threads=False)
        except Exception:
            # No file: there may be no standard error, and in notebooks it is something else.
            yield
            return
        try:
            yield
        finally:
            faulthandler.disable()


#: The error log of this process.
error_log = ErrorLog()


def write(level: str, message: str) -> None:
    """Write a line of the level debug, info, warning or error."""
    if error_log.journal is not None:
        error_log.journal.write(level, message)


def exception(message: str, error: BaseException) -> None:
    """Write a line that says what went wrong, and the traceback of `error` below it."""
    name = type(error).__name__
    try:
        said = str(error).partition("\n")[0][:500]
        said = f"{name}: {said if said.isprintable() else ascii(said)}" if said else name
    except BaseException:
        said = name
    try:
        # When it is needed: it is large.
        import traceback

        text = "".join(traceback.format_exception(error))
    except BaseException as another:
        text = f"{name} (its traceback cannot be had: {type(another).__name__})"
    write("error", f"{message}: {said}\n{text}")


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
