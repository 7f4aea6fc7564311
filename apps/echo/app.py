"""What the server understood of a request, as JSON."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with `method`, `path`, `query`, `headers` and `body`.

    Header names are lower-case. Bytes are shown as Latin-1, one character each, so that a test can
    compare them all.
    """
    headers = {
        key[5:].replace("_", "-").lower(): value
        for key, value in environ.items()
        if key.startswith("HTTP_")
    }
    for key in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(key):
            headers[key.replace("_", "-").lower()] = environ[key]
    answer = {
        "method": environ["REQUEST_METHOD"],
        "path": environ.get("PATH_INFO", ""),
        "query": environ.get("QUERY_STRING", ""),
        "headers": headers,
        "body": _body(environ).decode("latin-1"),
    }
    body = json.dumps(answer).encode()
    start_response(
        "200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    )
    return [body]


def _body(environ: WSGIEnvironment) -> bytes:
    source = environ["wsgi.input"]
    if environ.get("wsgi.input_terminated"):
        body: bytes = source.read()
        return body
    length = int(environ.get("CONTENT_LENGTH") or 0)
    return source.read(length) if length else b""
