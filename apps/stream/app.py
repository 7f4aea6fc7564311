"""Answers that come in pieces, in each of the ways PEP 3333 allows.

    /           a generator that yields the pieces
    /write      the pieces through the callable that `start_response` returns
    /late       a generator that calls `start_response` only before its first piece
    /length     a generator, with a Content-Length
    /closed     how many answers have been closed since the start, as a number

All but the last take `?chunks=10`, `?size=16` (bytes of a piece) and `?delay=0` (seconds before
each piece).
"""

from __future__ import annotations

import time
from urllib.parse import parse_qs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

HEADERS = [("Content-Type", "text/plain")]

_closed: list[None] = []


class Pieces:
    """`chunks` pieces of `size` bytes, `delay` seconds before each. Counts its closing."""

    def __init__(self, environ: WSGIEnvironment) -> None:
        arguments = parse_qs(environ.get("QUERY_STRING", ""))
        self.chunks = int(arguments.get("chunks", ["10"])[0])
        self.size = int(arguments.get("size", ["16"])[0])
        self.delay = float(arguments.get("delay", ["0"])[0])

    def __iter__(self) -> Iterator[bytes]:
        for number in range(self.chunks):
            if self.delay:
                time.sleep(self.delay)
            yield f"{number} ".encode().ljust(self.size, b".")[: self.size]

    def close(self) -> None:
        """Called by the server, whatever happened."""
        # Appending is atomic under threads, adding to a number is not.
        _closed.append(None)


class LatePieces(Pieces):
    """Pieces that begin the response themselves."""

    def __init__(self, environ: WSGIEnvironment, start_response: StartResponse) -> None:
        super().__init__(environ)
        self.start_response = start_response

    def __iter__(self) -> Iterator[bytes]:
        self.start_response("200 OK", HEADERS.copy())
        yield from super().__iter__()


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Stream in the way of the path."""
    match environ.get("PATH_INFO"):
        case "/":
            start_response("200 OK", HEADERS.copy())
            return Pieces(environ)
        case "/write":
            write = start_response("200 OK", HEADERS.copy())
            for piece in Pieces(environ):
                write(piece)
            return []
        case "/late":
            return LatePieces(environ, start_response)
        case "/length":
            pieces = Pieces(environ)
            length = pieces.chunks * pieces.size
            start_response("200 OK", [*HEADERS, ("Content-Length", str(length))])
            return pieces
        case "/closed":
            start_response("200 OK", HEADERS.copy())
            return [str(len(_closed)).encode()]
    start_response("404 Not Found", HEADERS.copy())
    return [b"/ /write /late /length /closed\n"]
