"""Answers a request with its own body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """The body of the request, as it came."""
    body: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    start_response(
        "200 OK", [("Content-Type", "application/octet-stream"), ("Content-Length", str(len(body)))]
    )
    return [body]
