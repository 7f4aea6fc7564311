"""Answers with JSON of as many KB as the path says, always the same."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from random import Random
from typing import Any

WORDS = ("amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty")
RECORD = 150
"""About the bytes of one."""


@functools.cache
def content(kilobytes: int) -> bytes:
    """Records as an API has them: numbers, words, dates, identifiers."""
    random = Random(kilobytes)
    records = [
        {
            "id": f"{random.getrandbits(64):016x}",
            "name": f"{random.choice(WORDS)} {random.choice(WORDS)}",
            "created": f"2026-{random.randint(1, 12):02}-{random.randint(1, 28):02}T08:30:00Z",
            "price": round(random.uniform(1, 1000), 2),
            "tags": random.sample(WORDS, 3),
            "active": random.random() < 0.8,
        }
        for _ in range(kilobytes * 1000 // RECORD)
    ]
    return json.dumps(records).encode("ascii")


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    body = content(int(environ["PATH_INFO"].strip("/") or 1))
    fields = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    start_response("200 OK", fields)
    return [body]
