"""Only computes: a few milliseconds of plain Python, a fixed amount of work."""

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
