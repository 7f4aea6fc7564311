"""WSGI application that answers with small or large pages, the length of a posted body, or 404."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from loadtests.apps.proxied import pages

PIECE = 10_000


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A page, or how much was posted."""
    if environ["REQUEST_METHOD"] != "POST":
        return pages(environ, start_response)
    length = 0
    while piece := environ["wsgi.input"].read(PIECE):
        length += len(piece)
    body = str(length).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
