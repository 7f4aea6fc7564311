"""An application for attacks: 13 bytes, or 100,000 at `/large`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answers, and reads nothing."""
    body = b"Hello, world!" if environ["PATH_INFO"] != "/large" else 100_000 * b"a"
    headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))]
    start_response("200 OK", headers)
    return [body]
