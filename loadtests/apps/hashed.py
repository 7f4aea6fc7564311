"""Answers with the SHA-256 of the request's body, which it reads piece by piece."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

PIECE = 1 << 16


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """The digest, in hexadecimal."""
    digest, left = hashlib.sha256(), int(environ.get("CONTENT_LENGTH") or 0)
    while left and (piece := environ["wsgi.input"].read(min(PIECE, left))):
        digest.update(piece)
        left -= len(piece)
    body = digest.hexdigest().encode("ascii")
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
