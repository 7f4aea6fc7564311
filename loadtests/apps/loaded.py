"""Computes and waits for so many milliseconds as the query says: `/?computes=5&waits=60&pool=5`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from urllib.parse import parse_qs

POOLS: dict[str, AbstractContextManager[object]] = {
    "": nullcontext(),
    "5": threading.BoundedSemaphore(5),
}
"""Connections to a database, for one of which a request waits; without a size, nobody waits."""


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """Computes first: time of the processor, so that waiting for the interpreter is no work."""
    asked = {name: value for name, [value] in parse_qs(environ["QUERY_STRING"]).items()}
    end = time.thread_time() + float(asked.get("computes", 0)) / 1e3
    while time.thread_time() < end:
        sum(range(500))
    with POOLS[asked.get("pool", "")]:
        time.sleep(float(asked.get("waits", 0)) / 1e3)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "5")])
    return [b"done\n"]
