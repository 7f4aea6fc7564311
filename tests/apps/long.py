"""Responses of 8 MiB, in pieces or as one, each logged when the application has made it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.apps.basics import Environ, Pieces, StartResponse

BLOCK = bytes(range(256)) * 256
BLOCKS = 128


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Answer `/pieces`, `/chunks` (without a length), `/written` and, as a list, anything else."""
    path = environ["PATH_INFO"]
    length = [] if path == "/chunks" else [("Content-Length", str(len(BLOCK) * BLOCKS))]
    write = start_response("200 OK", [("Content-Type", "application/octet-stream"), *length])
    if path == "/written":
        for block in pieces(environ):
            write(block)
        return []
    return [BLOCK * BLOCKS] if path == "/list" else pieces(environ)


def pieces(environ: Environ) -> Iterator[bytes]:
    """The answer in blocks of 64 KiB."""
    for _ in range(BLOCKS):
        yield BLOCK
    environ["wsgi.errors"].write(f"made {environ['PATH_INFO']}\n")
