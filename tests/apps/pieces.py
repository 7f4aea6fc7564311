"""An application whose responses come in pieces: quickly, or one by one as files appear."""

from __future__ import annotations

from collections.abc import Iterator

from tests.apps.basics import TEXT, Environ, StartResponse, wait_for_file

#: Of a response to `/many`.
MANY = 2_000


def application(environ: Environ, start_response: StartResponse) -> Iterator[bytes]:
    """`/many`: small ones; `/gate?FILE`: three, and one when the file is there."""
    declared = [("Content-Length", str(4 * MANY))] if environ["PATH_INFO"] == "/declared" else []
    start_response("200 OK", [TEXT, *declared])
    if environ["PATH_INFO"] == "/gate":
        yield from (b"one,", b"two,", b"three,")
        wait_for_file(environ["QUERY_STRING"])
        yield b"four"
    else:
        yield from (b"%04d" % number for number in range(MANY))
