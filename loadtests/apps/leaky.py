"""The varied pages, and a thousand octets that are kept for ever for each: a leak to be found."""

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
