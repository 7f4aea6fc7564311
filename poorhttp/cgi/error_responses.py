"""Answers in the place of a program, and what the log says of it."""

from __future__ import annotations

import os

from poorhttp import logs
from poorhttp._core import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def refuse(
    start_response: StartResponse, status: str, *headers: tuple[str, str]
) -> Iterable[bytes]:
    """Answer with a line of text."""
    start_response(status, [("Content-Type", "text/plain; charset=utf-8"), *headers])
    return [f"{status}\n".encode()]


def title(environ: WSGIEnvironment, start_response: StartResponse, file: str) -> str:
    """Return what to call a request and its program in the log."""
    name = os.path.basename(file)
    # A middleware may have put a function of its own in its place.
    if isinstance(start_response, Request):
        return f"request {start_response.number} {start_response.line}: {name}"
    return f"{environ['REQUEST_METHOD']} {environ.get('REQUEST_URI', '')}: {name}"


def complain(environ: WSGIEnvironment, start_response: StartResponse, file: str, what: str) -> None:
    """Log what is wrong with a program."""
    logs.write("error", f"{title(environ, start_response, file)}: {what}")
