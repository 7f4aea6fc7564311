"""The pages of `varied.py`, with a leak of a thousand bytes per request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from loadtests.apps import varied

LOST = 1000

kept: list[bytes] = []


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A page that is remembered."""
    kept.append(bytes(LOST))
    return varied.application(environ, start_response)
