"""An application of server-sent events: a stream of them at `/events`, 13 bytes elsewhere.

The mean number of seconds between two events is the query. Each event carries the time at which it
was made (time.monotonic_ns).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def _events(seconds: float) -> Iterator[bytes]:
    while True:
        yield b"data: %d\n\n" % time.monotonic_ns()
        time.sleep(seconds * random.uniform(0.5, 1.5))


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answers at once, or for as long as the client is there."""
    if environ["PATH_INFO"] == "/events":
        headers = [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache")]
        start_response("200 OK", headers)
        return _events(float(environ["QUERY_STRING"]))
    body = b"Hello, world!"
    headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))]
    start_response("200 OK", headers)
    return [body]
