"""Computes for about a millisecond, and then waits 20 ms for `upstream.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadtests.apps.prove.waits import wait

ROUNDS = 30_000


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """A sum, and what was waited for."""
    total = 0
    for number in range(ROUNDS):
        total += number
    body = b"%d %b" % (total, wait())
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
