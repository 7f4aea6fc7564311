"""An application whose responses come in pieces: quickly, or one by one as files appear."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

#: Of a response to `/many`.
MANY = 2_000


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
    """`/many`: small ones; `/gate?FILE`: three, and one when the file is there."""
    headers = [("Content-Type", "text/plain")]
    if environ["PATH_INFO"] == "/declared":
        headers.append(("Content-Length", str(4 * MANY)))
    start_response("200 OK", headers)
    if environ["PATH_INFO"] == "/gate":
        yield from (b"one,", b"two,", b"three,")
        gate = Path(environ["QUERY_STRING"])
        while not gate.exists():
            time.sleep(0.002)
        yield b"four"
    else:
        yield from (b"%04d" % number for number in range(MANY))
