"""Text streams for `wsgi.errors`: one that writes to a file, one that writes log messages."""

from __future__ import annotations

import io
from _thread import get_ident
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class LineStream(io.TextIOBase):
    """A text stream that logs complete lines; lines of one `write` become one message.

    Each thread has its own incomplete line.
    """

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, write_log: Callable[[str, str], None], fd: int | None = None) -> None:
        """Take the function that logs, which is called with a level and a text.

        `fd`: descriptor of the log's file, for `fileno`; for the traceback of a crash, too.
        """
        self._write_log = write_log
        self._fd = fd
        self._unfinished: dict[int, str] = {}

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the log's file."""
        if self._fd is None:
            raise io.UnsupportedOperation("this log is no file")
        return self._fd

    def write(self, text: str, /) -> int:
        """Log complete lines, and keep the rest."""
        if not isinstance(text, str):
            raise TypeError(f"write() takes a str, not {type(text).__name__}")
        whole, end, rest = (self._unfinished.pop(get_ident(), "") + text).rpartition("\n")
        if rest:
            self._unfinished[get_ident()] = rest
        if end:
            self._write_log("error", whole)
        return len(text)

    def flush(self) -> None:
        """Log the incomplete line."""
        rest = self._unfinished.pop(get_ident(), "")
        if rest:
            self._write_log("error", rest)


class LogFile(io.FileIO):
    """The file of the error log; no application fails because it cannot be written."""

    def __init__(
        self, fd: int, mode: str, write_log: Callable[[str, str], None], *, closefd: bool = True
    ) -> None:
        """Take a descriptor as `io.FileIO` does.

        `write_log` is called with the level and the text of what cannot be written. It is a
        journal's, which cannot write it either, and counts it.
        """
        super().__init__(fd, mode, closefd)
        self._write_log = write_log

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all of it."""
        rest = memoryview(data).cast("B")
        length = len(rest)
        try:
            while rest:
                # None: a pipe that does not wait is full.
                written: int | None = super().write(rest)
                if written is None:
                    raise BlockingIOError
                rest = rest[written:]
        except OSError:
            self._write_log("error", bytes(rest).decode("utf-8", "replace"))
        return length
