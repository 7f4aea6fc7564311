"""Error responses in place of a CGI program's, and their log lines."""

from __future__ import annotations

import os
from collections.abc import Iterable

from poorhttp import logs
from poorhttp._core import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def respond(
    start_response: StartResponse, status: str, *headers: tuple[str, str]
) -> Iterable[bytes]:
    """Answer with the status as a line of text."""
    start_response(status, [("Content-Type", "text/plain; charset=utf-8"), *headers])
    return [f"{status}\n".encode()]


def log_name(environ: WSGIEnvironment, start_response: StartResponse, file: str) -> str:
    """Return the name of a request and its program in the log."""
    name = os.path.basename(file)
    # A middleware may pass another `start_response` than the server's, which is the request.
    if isinstance(start_response, Request):
        return f"request {start_response.number} {start_response.line}: {name}"
    return f"{environ['REQUEST_METHOD']} {environ.get('REQUEST_URI', '')}: {name}"


def log_problem(
    environ: WSGIEnvironment, start_response: StartResponse, file: str, problem: str
) -> None:
    """Log what is wrong with a program."""
    logs.write("error", f"{log_name(environ, start_response, file)}: {problem}")
