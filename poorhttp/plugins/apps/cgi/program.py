"""Runs one CGI program for a request, and makes the response of its output."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from errno import EAGAIN, EMFILE, ENFILE, ENOMEM, ETXTBSY
from time import monotonic

from poorhttp import logs
from poorhttp._core import Request
from poorhttp.errors import NoResponse, RequestTimeout
from poorhttp.plugins.apps.cgi.error_responses import log_name, log_problem, request_name, respond
from poorhttp.plugins.apps.cgi.local_redirect import LOCAL_REDIRECT
from poorhttp.plugins.apps.native import CgiProgram, split_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from poorhttp.plugins.apps.cgi.application import Programs

#: Local redirects (RFC 3875 section 6.2.2) that may follow each other; Apache's figure.
MAX_REDIRECTS = 10

#: Variables that describe the body, which a request after a local redirect has not.
BODY_VARIABLES = frozenset({"CONTENT_LENGTH", "CONTENT_TYPE"})

#: Errors of starting a program that pass by themselves.
TEMPORARY_ERRORS = frozenset({EAGAIN, EMFILE, ENFILE, ENOMEM, ETXTBSY})


class ProgramRun:
    """A program that answers a request; as an iterable, what is left of the answer's body."""

    program: CgiProgram

    def __init__(
        self,
        programs: Programs,
        environ: WSGIEnvironment,
        start_response: StartResponse,
        file: bytes,
    ) -> None:
        self.programs = programs
        self.slots = programs.slots()
        self.environ = environ
        self.start_response = start_response
        self.file = os.fsdecode(file)
        self.stopping_since: float | None = None

    def respond(self, variables: list[tuple[bytes, bytes]]) -> Iterable[bytes]:
        """Start the program, and answer with its output."""
        try:
            # Starting a program is expensive, and the client may have left while it waited.
            self.check()
            if isinstance(self.start_response, Request):
                # Too short for the other threads to notice, and still all requests would wait.
                self.start_response.expect_wait()
            release = self.slots.acquire(self.check)
        except BaseException as error:
            raise self.logged(error) from None
        try:
            self.program = self.slots.call(
                CgiProgram,
                os.fsencode(self.file),
                variables,
                self.environ,
                body_of(self.environ),
                self.programs.limits,
                logs.error_log.opened,
                log_name(self.environ, self.start_response, self.file),
                release,
                request_name(self.start_response),
            )
        except BaseException as error:
            release()
            if not isinstance(error, (OSError, ValueError)):
                raise
            return self.respond_not_started(error)
        try:
            while (head := self.slots.call(self.program.head)) is None:
                self.check()
            return self.start(*head)
        except BaseException as error:
            self.close()
            raise self.logged(error) from None

    def start(
        self, status: str | None, headers: list[tuple[str, str]], body: bytes | None
    ) -> Iterable[bytes]:
        """Start the answer; return its body, which is this run itself unless it is complete.

        Without a status it is a local redirect.
        """
        if status is None:
            # A program may go on with some work after its output, and is not killed for that.
            while self.slots.call(self.program.piece) is not None:
                self.check()
            self.close()
            return self.redirect(headers[0][1])
        try:
            self.start_response(status, headers)
        except ValueError as error:
            raise RuntimeError(str(error)) from None
        if body is None:
            return self
        self.log_exit()
        # A program that has closed its output is not waited for.
        self.program.close()
        return [body]

    def __iter__(self) -> ProgramRun:
        return self

    def __next__(self) -> bytes:
        try:
            piece = self.slots.call(self.program.piece)
            if piece == b"":
                self.check_stopping()
        except BaseException as error:
            raise self.logged(error) from None
        if piece is None:
            self.log_exit()
            raise StopIteration
        return piece

    def close(self) -> None:
        """End the program, unless it has ended by itself (PEP 3333)."""
        self.slots.call(self.program.close)

    def check(self) -> None:
        """Check that the answer is still wanted.

        Raises:
            ConnectionResetError: the client has left.
            TimeoutError: the server stops, and waits no longer.
        """
        if isinstance(self.start_response, Request):
            self.start_response.write(b"")
        self.check_stopping()

    def check_stopping(self) -> None:
        """Check that a server that stops still waits for this program.

        After the end of this process nothing would end the program.

        Raises:
            TimeoutError: `graceful_timeout` is over.
        """
        if isinstance(self.start_response, Request) and self.start_response.stopping:
            now = monotonic()
            if self.stopping_since is None:
                self.stopping_since = now
            elif now - self.stopping_since >= self.programs.graceful_timeout:
                raise TimeoutError("the server stops (graceful_timeout)")

    def log_problem(self, problem: str) -> None:
        log_problem(self.environ, self.start_response, self.file, problem)

    def logged(self, error: BaseException) -> BaseException:
        """Log a fault of the program; return the exception to raise for it."""
        if isinstance(error, TimeoutError):
            self.log_problem(f"{error}, and was ended")
            return RequestTimeout()
        if isinstance(error, RuntimeError):
            self.log_problem(str(error))
            return NoResponse()
        return error

    def log_exit(self) -> None:
        """Log an exit status other than 0."""
        if code := self.program.exit_code:
            name = log_name(self.environ, self.start_response, self.file)
            text = f"{name}: it ended with status {code}"
            logs.write("info", text, request_name(self.start_response))

    def respond_not_started(self, error: Exception) -> Iterable[bytes]:
        """Answer for a program that cannot be started."""
        code = error.errno if isinstance(error, OSError) else None
        why = str(error) if code is None else os.strerror(code)
        temporary = code in TEMPORARY_ERRORS
        hint = (
            "" if temporary else " (does it begin with a #! line, and does that interpreter exist?)"
        )
        self.log_problem(f"it cannot be started: {why}{hint}")
        status = "503 Service Unavailable" if temporary else "502 Bad Gateway"
        return respond(self.start_response, status)

    def redirect(self, location: str) -> Iterable[bytes]:
        """Answer with another path of this server: a local redirect (RFC 3875 section 6.2.2)."""
        earlier = self.environ.get("poorhttp.local_redirects", 0)
        if earlier >= MAX_REDIRECTS:
            self.log_problem(f"{earlier + 1} local redirects in a row, the last to {location}")
            return respond(self.start_response, "500 Internal Server Error")
        try:
            decoded, query = split_target(location.encode("latin-1"))
        except ValueError as error:
            self.log_problem(f"its Location is not a path that a client could request: {error}")
            return respond(self.start_response, "502 Bad Gateway")
        path = decoded.decode("latin-1")
        environ = {key: value for key, value in self.environ.items() if key not in BODY_VARIABLES}
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
        router: WSGIApplication | None = environ.get(LOCAL_REDIRECT)
        if router is not None:
            return router(environ, self.start_response)
        # Under another server, only this folder of programs is known.
        prefix: str = self.environ.get("SCRIPT_NAME", "")
        if not path.startswith(f"{prefix}/"):
            return respond(self.start_response, "404 Not Found")
        environ["SCRIPT_NAME"], environ["PATH_INFO"] = prefix, path[len(prefix) :]
        return self.programs(environ, self.start_response)


def body_of(environ: WSGIEnvironment) -> bytes | int | None:
    """Return the body of a request: bytes, or the descriptor of its file."""
    source = environ["wsgi.input"]
    if isinstance(source, io.BytesIO):
        return source.getvalue() or None
    if isinstance(source, io.BufferedReader):
        try:
            return source.fileno()
        except io.UnsupportedOperation:
            # A middleware is called before the body has come (stream_request_body).
            return source.read() or None
    # Of a middleware, or of another server.
    length = environ.get("CONTENT_LENGTH")
    return source.read(int(length)) if length else None
