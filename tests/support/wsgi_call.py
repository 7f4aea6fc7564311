"""One request to a WSGI application in this process, checked by `wsgiref.validate` on the way."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

if TYPE_CHECKING:
    from collections.abc import Callable


class Answer:
    """What an application answered.

    Attributes:
        status: the number.
        reason: the text behind it.
        headers: by lower-case name; the last one where a name is repeated.
        fields: every header, in order.
        body: all of it, through `write()` and from the iterable.
        log: what was written to `wsgi.errors`.
    """

    def __init__(self) -> None:
        self.status = 0
        self.reason = ""
        self.fields: list[tuple[str, str]] = []
        self.body = b""
        self.log = ""

    @property
    def headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.fields}

    @property
    def text(self) -> str:
        return self.body.decode()


def ask(
    application: Callable[..., Any],
    path: str = "/",
    method: str = "GET",
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    *,
    environ: dict[str, Any] | None = None,
    validate: bool = True,
) -> Answer:
    """Send a request and read the whole answer.

    Args:
        application: the WSGI application.
        path: as in a request line, with a query; not percent-encoded, so bytes as Latin-1.
        method: the request's method.
        body: the request's body.
        headers: the request's headers.
        environ: anything else for the environ.
        validate: whether the application is held to PEP 3333, or is one that breaks it.
    """
    answer = Answer()
    log = io.StringIO()
    path, _, query = path.partition("?")
    asked: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SCRIPT_NAME": "",
        "REMOTE_ADDR": "192.0.2.7",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": log,
    }
    if body:
        asked["CONTENT_LENGTH"] = str(len(body))
    for name, value in (headers or {}).items():
        key = name.upper().replace("-", "_")
        asked[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value
    asked.update(environ or {})
    setup_testing_defaults(asked)

    written: list[bytes] = []

    def start_response(status: str, fields: list[tuple[str, str]], exc_info: Any = None) -> Any:
        if exc_info and written:
            raise exc_info[1].with_traceback(exc_info[2])
        number, _, answer.reason = status.partition(" ")
        answer.status = int(number)
        answer.fields = fields
        return written.append

    called = validator(application) if validate else application
    result = called(asked, start_response)
    try:
        written.extend(result)
    finally:
        if hasattr(result, "close"):
            result.close()
    answer.body = b"".join(written)
    answer.log = log.getvalue()
    return answer
