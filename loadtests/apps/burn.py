"""Computes for about a millisecond, or so many rounds as the query says: load for one core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ROUNDS = 40_000


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """A fixed amount of work, not a fixed time: waiting for a core must not count as working."""
    total = 0
    for number in range(int(environ["QUERY_STRING"] or ROUNDS)):
        total += number
    body = str(total).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
