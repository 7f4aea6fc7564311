"""Answers with the number of bytes of the request's body, which it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PIECE = 1 << 16


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """The number, in decimal."""
    count, left = 0, int(environ.get("CONTENT_LENGTH") or 0)
    while count < left and (piece := environ["wsgi.input"].read(min(PIECE, left - count))):
        count += len(piece)
    body = b"%d" % count
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
