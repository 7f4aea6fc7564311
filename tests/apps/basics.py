"""What the applications here are written with: types of WSGI, short answers, waits for files."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TypeAlias

    from _typeshed import wsgi

    Environ: TypeAlias = dict[str, Any]
    Pieces: TypeAlias = Iterable[bytes]
    StartResponse: TypeAlias = wsgi.StartResponse
    WSGIApplication: TypeAlias = wsgi.WSGIApplication
else:
    # Only annotations name them, and nobody evaluates these.
    Environ = Pieces = StartResponse = WSGIApplication = object

TEXT = ("Content-Type", "text/plain")


def say(start_response: StartResponse, text: str | bytes) -> Pieces:
    """Answer with a text."""
    start_response("200 OK", [TEXT])
    return [text if isinstance(text, bytes) else text.encode()]


def tell(start_response: StartResponse, value: object) -> Pieces:
    """Answer with a value as JSON."""
    import json

    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(value).encode()]


def wait_for_file(path: str) -> None:
    """Wait until a file exists."""
    while not os.path.exists(path):
        time.sleep(0.002)


def enter(environ: Environ, path: str) -> None:
    """Note `entered FILE` in the log, then wait until the file exists."""
    environ["wsgi.errors"].write(f"entered {path}\n")
    wait_for_file(path)


def two_pieces(start_response: StartResponse, path: str) -> Pieces:
    """Answer with a piece, and another when the file exists; a proxy is not to collect them."""
    start_response("200 OK", [TEXT, ("X-Accel-Buffering", "no")])

    def pieces() -> Iterator[bytes]:
        yield b"first\n"
        wait_for_file(path)
        yield b"second\n"

    return pieces()
