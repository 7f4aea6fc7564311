"""Malformed requests that a server must refuse, and the statuses of its answers (`refused.jsonl`).

The tests of the server write the file from their protocol cases.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("refused.jsonl")
"""An object a line; `send` has the pieces of the request, each as often as its number says."""


class Refused(NamedTuple):
    """`send` is what is sent, `statuses` are those of the answers; then the connection ends."""

    name: str
    send: bytes
    statuses: tuple[int, ...]


@functools.cache
def refused() -> list[Refused]:
    found = map(json.loads, FILE.read_text(encoding="ascii").splitlines())
    return [
        Refused(
            one["name"],
            b"".join(times * text.encode("latin-1") for times, text in one["send"]),
            tuple(one["statuses"]),
        )
        for one in found
    ]
