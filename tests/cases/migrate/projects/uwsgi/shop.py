"""A plain WSGI application, for comparisons of two servers."""

import json
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl

Environ = dict[str, Any]


def application(environ: Environ, start_response: Callable[..., object]) -> Iterable[bytes]:
    """Answer by the path."""
    status, headers, body = answer(environ, environ["PATH_INFO"])
    start_response(status, headers)
    return body


def answer(environ: Environ, path: str) -> tuple[str, list[tuple[str, str]], Iterable[bytes]]:
    """Return status, headers and body for a path."""
    html = [("Content-Type", "text/html; charset=utf-8")]
    query = dict(parse_qsl(environ["QUERY_STRING"]))
    if path == "/":
        return "200 OK", [*html, ("Content-Length", "18")], [b"<h1>The shop</h1>\n"]
    if path == "/hello":
        return "200 OK", html, [f"Hello, {query['name']}!".encode()]
    if path == "/form":
        length = int(environ["CONTENT_LENGTH"])
        fields = dict(parse_qsl(environ["wsgi.input"].read(length).decode()))
        return "200 OK", [("Content-Type", "application/json")], [json.dumps(fields).encode()]
    if path == "/redirect":
        return "302 Found", [*html, ("Location", "/hello?name=moved")], []
    if path == "/cookie":
        cookies = [("Set-Cookie", "visits=1"), ("Set-Cookie", "basket=apple; HttpOnly")]
        return "200 OK", [*html, *cookies], [environ.get("HTTP_COOKIE", "none").encode()]
    if path == "/broken":
        return "500 Internal Server Error", html, [b"broken"]
    if path == "/stream":
        return "200 OK", [("Content-Type", "text/plain")], iter([b"one ", b"two ", b"three"])
    if path == "/scheme":
        text = f"{environ['wsgi.url_scheme']} {environ['REMOTE_ADDR']}"
        return "200 OK", html, [text.encode()]
    return "404 Not Found", html, [b"not found"]
