# Types of the functions and classes of `_core` that only `plugins/apps` uses.
from collections.abc import Callable
from typing import Any, final

from poorhttp._core import LogWriter, RequestName

def read_fields(text: str) -> list[tuple[str, str]]:
    """Return the decoded names and values of a query string or an urlencoded form.

    Like `urllib.parse.parse_qsl(text, keep_blank_values=True)`.
    """

def reason_phrases() -> dict[int, str]:
    """Return the reason phrases of final statuses, by their codes (RFC 9110 section 15)."""

def find_program(folder: bytes, path: bytes) -> tuple[bytes, int | None]:
    """Return the file of the CGI program of a path, and the length of the part that names it.

    `None`: the path names a folder, and the file is its index program.

    Args:
        folder: canonical path of the folder with the programs.
        path: decoded path of the request, as in `PATH_INFO`.

    Raises:
        FileNotFoundError: there is none; with a file as argument: a symbolic link on the way leads
            out of the folder.
        IsADirectoryError: a folder with an index program, without the trailing slash.
        PermissionError: it is not executable; the argument is the file.
        NotImplementedError: a non-parsed header script (`nph-`); the argument is the file.
    """

def split_target(target: bytes) -> tuple[bytes, bytes]:
    """Return decoded path and query of a local redirect.

    Raises:
        ValueError: a client could not send this as a request target.
    """

@final
class CgiProgram:
    """A running CGI program (RFC 3875).

    Dropping or closing it kills its process group and reaps it. Its methods wait without the
    interpreter's lock and at most 100 ms, so that callers can check for signals and disconnects.
    """

    def __init__(
        self,
        file: bytes,
        variables: list[tuple[bytes, bytes]],
        environ: dict[str, Any],
        body: bytes | int | None,
        limits: tuple[float, float | None],
        error_log: LogWriter,
        label: str,
        done: Callable[[], object],
        request: RequestName | None = None,
    ) -> None:
        """Start it, in its folder and in a process group of its own.

        Args:
            file: its absolute path.
            variables: environment variables that do not depend on the request.
            environ: source of the meta-variables (RFC 3875 section 4.1); credentials are left out.
            body: its standard input: bytes, or the descriptor of a file, read from its beginning.
            limits: seconds that it may run without output, and in total.
            error_log: log for the lines of its standard error.
            label: prefix of each of these lines.
            done: called in any thread after it was reaped, but not if the constructor raises.
            request: that these lines are about.

        Raises:
            OSError: it cannot be started.
            ValueError: a variable contains a NUL or is not Latin-1.
        """

    def head(self) -> tuple[str | None, list[tuple[str, str]], bytes | None] | None:
        """Return status, headers and, if it has ended, the whole body; `None`: no head yet.

        Without a status it is a local redirect, whose only header is `Location` (section 6.2.2).

        Raises:
            TimeoutError: a time limit is exceeded.
            RuntimeError: there is no valid response; the text is the reason.
        """

    def piece(self) -> bytes | None:
        """Return the next piece of the body, empty if there is nothing yet, `None` at its end.

        Raises:
            TimeoutError: a time limit is exceeded.
            RuntimeError: the response is not complete; the text is the reason.
        """

    @property
    def exit_code(self) -> int | None:
        """Its exit status, if known."""

    def close(self) -> None:
        """Kill its process group and reap it."""
