"""Error responses in place of a CGI program's, and their log lines."""

from __future__ import annotations

import os
from collections.abc import Iterable

from poorhttp import logs
from poorhttp._core import Request, RequestName

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
        return f"{start_response.name}: {name}"
    return f"{environ['REQUEST_METHOD']} {environ.get('REQUEST_URI', '')}: {name}"


def request_name(start_response: StartResponse) -> RequestName | None:
    """Return the name of the request itself, if it is known."""
    return start_response.name if isinstance(start_response, Request) else None


def log_problem(
    environ: WSGIEnvironment, start_response: StartResponse, file: str, problem: str
) -> None:
    """Log what is wrong with a program."""
    name = log_name(environ, start_response, file)
    logs.write("error", f"{name}: {problem}", request_name(start_response))
