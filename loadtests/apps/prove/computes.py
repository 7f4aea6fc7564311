"""WSGI application of the study `prove` that only computes: some milliseconds of plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ROUNDS = 60_000


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """A sum."""
    total = 0
    for number in range(ROUNDS):
        total += number
    body = b"%d\n" % total
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
