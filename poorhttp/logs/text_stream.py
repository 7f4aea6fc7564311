"""Text streams for `wsgi.errors`: lines that are written to a file, or become log messages."""

from __future__ import annotations

import _thread
import io
import os
from collections.abc import Callable
from contextlib import suppress

from poorhttp._core import note_unfinished_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from _typeshed import ReadableBuffer

#: The lines of this process without their ends, by thread or greenlet.
UNFINISHED: dict[int, str] = {}

#: Characters of a line without an end that a thread may have in memory.
LONGEST = 1 << 16


class KeptOpen(io.IOBase):
    """A stream that no application closes: all requests of a process share it."""

    def close(self) -> None:
        """Only flush."""
        self.flush()

    def detach(self) -> NoReturn:
        """Refuse."""
        raise io.UnsupportedOperation("wsgi.errors belongs to the server")


class LineStream(KeptOpen, io.TextIOBase):
    """A text stream that passes complete lines on; those of one `write` stay together.

    Each thread, or greenlet, has its own incomplete line, which `flush` ends, and the server at the
    end of a request.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, write_lines: Callable[[str], object], file: LogFile | None = None) -> None:
        """Take the function that gets the lines, joined, and without their last line end.

        `file`: the log, if it is a file; for `fileno`, for the traceback of a crash, too.
        """
        self._write_lines = write_lines
        self._file = file

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the log's file."""
        if self._file is None:
            raise io.UnsupportedOperation("this log is no file")
        return self._file.fileno()

    def isatty(self) -> bool:
        """Whether the log is a terminal."""
        return self._file is not None and self._file.isatty()

    @property
    def buffer(self) -> LogBuffer:
        """A binary stream that writes to the same file."""
        if self._file is None:
            raise AttributeError("this log is no file, and has no buffer")
        return LogBuffer(self._file)

    def write(self, text: str, /) -> int:
        """Pass complete lines on, and keep the rest."""
        if not isinstance(text, str):
            raise TypeError(f"write() takes a str, not {type(text).__name__}")
        # Looked up here: gevent replaces it by one that tells greenlets apart.
        ident = _thread.get_ident()
        whole, end, rest = (UNFINISHED.pop(ident, "") + text).rpartition("\n")
        if len(rest) > LONGEST:
            whole, end, rest = f"{whole}{end}{rest}", "\n", ""
        if rest:
            UNFINISHED[ident] = rest
            note_unfinished_line(True)
        if end:
            self._write_lines(whole)
        return len(text)

    def flush(self) -> None:
        """End the incomplete line of this thread."""
        rest = UNFINISHED.pop(_thread.get_ident(), "")
        if rest:
            self._write_lines(rest)
        if not UNFINISHED:
            note_unfinished_line(False)

    def flush_all(self) -> None:
        """End the incomplete lines of all threads."""
        while UNFINISHED:
            self._write_lines(UNFINISHED.popitem()[1])
        note_unfinished_line(False)


class LogBuffer(KeptOpen, io.BufferedWriter):
    """A binary stream that writes to the error log, and does not close it."""


class LogFile(io.FileIO):
    """The file of the error log; no application closes it, or fails as it cannot be written."""

    def __init__(self, fd: int, write_log: Callable[[str, str], None]) -> None:
        """Take a descriptor, which is closed with the last reference.

        `write_log` is called with the level and the text of a message that cannot be written: the
        `LogWriter` of the error log, which cannot write it either, counts lost messages.
        """
        super().__init__(fd, "w")
        self._write_log = write_log

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all or some of it."""
        written = None
        with suppress(OSError):
            written = super().write(data)
        # None, too: it would have to wait.
        if written is None:
            text = bytes(data)
            self._write_log("error", text.decode("utf-8", "replace"))
            return len(text)
        return written

    def write_lines(self, text: str) -> None:
        """Write lines, and the end of the last one, at once if the system does."""
        data = f"{text}\n".encode("utf-8", "backslashreplace")
        while data:
            data = data[self.write(data) :]

    def close(self) -> None:
        """Do nothing."""

    def __del__(self) -> None:
        # Without this the base class would call `close`.
        with suppress(Exception):  # at the end of the process
            os.close(self.fileno())
