"""`/N` is a document of N bytes; a posted body is answered with its length and checksum."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from loadtests.apps.pattern import pieces, summary

KEPT = 16_384
"""The largest document that is kept; larger ones are made anew, piece by piece."""

_kept: dict[str, list[bytes]] = {}


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A document as its path says, or the checksum of what was sent."""
    body: Iterable[bytes]
    if environ["REQUEST_METHOD"] == "POST":
        body = [summary(environ["wsgi.input"].read)]
        length = len(body[0])
    else:
        path = environ["PATH_INFO"]
        length = int(path[1:] or 0)
        if path in _kept:
            body = _kept[path]
        elif length <= KEPT:
            body = _kept[path] = list(pieces(length))
        else:
            body = pieces(length)
    start_response(
        "200 OK", [("Content-Type", "application/octet-stream"), ("Content-Length", str(length))]
    )
    return body
