"""A program that runs, and the request that it answers."""

from __future__ import annotations

import io
import os
from errno import EAGAIN, EMFILE, ENFILE, ENOMEM, ETXTBSY
from time import monotonic

from poorhttp import logs
from poorhttp._core import Program, Request, split_target
from poorhttp.cgi.error_responses import complain, refuse, title
from poorhttp.errors import RequestTimeout, Unanswered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from poorhttp.cgi.application import Programs

#: Local redirects (RFC 3875 section 6.2.2) that may follow each other. Apache has ten as well.
MOST_REDIRECTS = 10

#: What of a request is not true of the one that a local redirect stands for.
OF_A_BODY = frozenset({"CONTENT_LENGTH", "CONTENT_TYPE"})

#: Why a program cannot be started, and another moment it can.
PASSING = frozenset({EAGAIN, EMFILE, ENFILE, ENOMEM, ETXTBSY})


class Run:
    """A program that runs, and the request that it answers; the rest of its body, if it is late."""

    program: Program

    def __init__(
        self,
        programs: Programs,
        environ: WSGIEnvironment,
        start_response: StartResponse,
        file: bytes,
    ) -> None:
        self.programs = programs
        self.crew = programs.crew()
        self.environ = environ
        self.start_response = start_response
        self.file = os.fsdecode(file)
        self.stopping_since: float | None = None

    def answer(self, variables: list[tuple[bytes, bytes]]) -> Iterable[bytes]:
        """Start the program, and answer with what it says."""
        try:
            # It may have left while it waited for its turn, and a program is dear.
            self.look()
            if isinstance(self.start_response, Request):
                # A program may take less than a tick of the crew's; still all would wait for it.
                self.start_response.expect_wait()
            give_back = self.crew.take_place(self.look)
        except BaseException as error:
            raise self.told(error) from None
        try:
            self.program = self.crew.wait(
                Program,
                os.fsencode(self.file),
                variables,
                self.environ,
                body_of(self.environ),
                self.programs.limits,
                logs.error_log.opened,
                title(self.environ, self.start_response, self.file),
                give_back,
            )
        except BaseException as error:
            give_back()
            if not isinstance(error, (OSError, ValueError)):
                raise
            return self.be_refused(error)
        try:
            while (head := self.crew.wait(self.program.head)) is None:
                self.look()
            return self.begin(*head)
        except BaseException as error:
            self.close()
            raise self.told(error) from None

    def begin(
        self, status: str | None, headers: list[tuple[str, str]], whole: bytes | None
    ) -> Iterable[bytes]:
        """Answer with status, headers and body, if that is complete."""
        if status is None:
            # It may do something behind its last word, and nobody would want it to be killed.
            while self.crew.wait(self.program.piece) is not None:
                self.look()
            self.close()
            return self.redirect(headers[0][1])
        try:
            self.start_response(status, headers)
        except ValueError as error:
            raise RuntimeError(str(error)) from None
        if whole is None:
            return self
        self.note_exit()
        # One that has closed its output is not waited for.
        self.program.close()
        return [whole]

    def __iter__(self) -> Run:
        return self

    def __next__(self) -> bytes:
        try:
            piece = self.crew.wait(self.program.piece)
            if piece == b"":
                self.look_at_the_time()
        except BaseException as error:
            raise self.told(error) from None
        if piece is None:
            self.note_exit()
            raise StopIteration
        return piece

    def close(self) -> None:
        """End the program, unless it has ended by itself (PEP 3333)."""
        self.crew.wait(self.program.close)

    def look(self) -> None:
        """Look whether somebody still wants the answer.

        Raises:
            ConnectionResetError: the client has left.
            TimeoutError: the server stops, and waits no longer.
        """
        if isinstance(self.start_response, Request):
            self.start_response.write(b"")
        self.look_at_the_time()

    def look_at_the_time(self) -> None:
        """Look whether the server waits for this program.

        With the process that has started it nobody would be left to end it.

        Raises:
            TimeoutError: no longer.
        """
        if isinstance(self.start_response, Request) and self.start_response.stopping:
            now = monotonic()
            if self.stopping_since is None:
                self.stopping_since = now
            elif now - self.stopping_since >= self.programs.patience:
                raise TimeoutError("the server stops (graceful_timeout)")

    def complain(self, what: str) -> None:
        complain(self.environ, self.start_response, self.file, what)

    def told(self, error: BaseException) -> BaseException:
        """Log what was wrong with the program; return what to raise."""
        if isinstance(error, TimeoutError):
            self.complain(f"{error}, and was ended")
            return RequestTimeout()
        if isinstance(error, RuntimeError):
            self.complain(str(error))
            return Unanswered()
        return error

    def note_exit(self) -> None:
        code = self.program.exit_code
        if code:
            what = title(self.environ, self.start_response, self.file)
            logs.write("info", f"{what}: it ended with status {code}")

    def be_refused(self, error: Exception) -> Iterable[bytes]:
        """Answer in the place of a program that cannot be started."""
        code = error.errno if isinstance(error, OSError) else None
        why = str(error) if code is None else os.strerror(code)
        passing = code in PASSING
        hint = "" if passing else " (is there a #! line, and the interpreter that it names?)"
        self.complain(f"it cannot be started: {why}{hint}")
        status = "503 Service Unavailable" if passing else "502 Bad Gateway"
        return refuse(self.start_response, status)

    def redirect(self, location: str) -> Iterable[bytes]:
        """Answer as if a path on this server had been asked for (RFC 3875 section 6.2.2)."""
        earlier = self.environ.get("poorhttp.local_redirects", 0)
        if earlier >= MOST_REDIRECTS:
            self.complain(f"{earlier + 1} local redirects after each other, the last to {location}")
            return refuse(self.start_response, "500 Internal Server Error")
        try:
            decoded, query = split_target(location.encode("latin-1"))
        except ValueError as error:
            self.complain(f"its Location is no path that a client could ask for: {error}")
            return refuse(self.start_response, "502 Bad Gateway")
        path = decoded.decode("latin-1")
        environ = {key: value for key, value in self.environ.items() if key not in OF_A_BODY}
        environ.update(
            {
                "REQUEST_METHOD": "GET",
                "SCRIPT_NAME": "",
                "PATH_INFO": path,
                "QUERY_STRING": query.decode("latin-1"),
                "REQUEST_URI": location,
                "RAW_URI": location,
                "wsgi.input": io.BytesIO(),
                "poorhttp.local_redirects": earlier + 1,
            }
        )
        everything: WSGIApplication | None = environ.get("poorhttp.local_redirect")
        if everything is not None:
            return everything(environ, self.start_response)
        # Nothing is known of what else the server has.
        prefix: str = self.environ.get("SCRIPT_NAME", "")
        if not path.startswith(f"{prefix}/"):
            return refuse(self.start_response, "404 Not Found")
        environ["SCRIPT_NAME"], environ["PATH_INFO"] = prefix, path[len(prefix) :]
        return self.programs(environ, self.start_response)


def body_of(environ: WSGIEnvironment) -> bytes | int | None:
    """Return the body of a request: octets, or the descriptor of its file."""
    source = environ["wsgi.input"]
    if isinstance(source, io.BytesIO):
        return source.getvalue() or None
    if isinstance(source, io.BufferedReader):
        return source.fileno()
    # Whatever a middleware has put in its place.
    length = environ.get("CONTENT_LENGTH")
    return source.read(int(length)) if length else None
