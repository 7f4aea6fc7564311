"""The application for tests of the gateway protocols (uwsgi, SCGI, FastCGI).

/echo...        what the server has heard, as JSON
/answers/NAME   an answer of tests/apps/answers.py
/pieces?FILE    a piece, and another when there is such a file
/large?N        so many octets at once
/streamed?N     so many octets in pieces, of a length that is not said
/file?PATH      the file, in wsgi.file_wrapper
/cut            a mistake after a piece was sent
/short          less than was promised
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from poorhttp.targets import load
from tests.apps.basics import TEXT, Environ, Pieces, StartResponse, two_pieces

echo = load("tests/apps/echo.py")
answers = load("tests/apps/answers.py")


def streamed(size: int) -> Iterator[bytes]:
    piece = bytes(range(250)) * 40
    for start in range(0, size, len(piece)):
        yield piece[: size - start]


def cut() -> Iterator[bytes]:
    yield b"0123456789" * 1_000
    raise RuntimeError("in the middle")


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    path, query = environ["PATH_INFO"], environ["QUERY_STRING"]
    if path.startswith("/answers/"):
        return answers({**environ, "PATH_INFO": path.removeprefix("/answers")}, start_response)
    match path:
        case "/pieces":
            return two_pieces(start_response, query)
        case "/large":
            start_response("200 OK", [TEXT])
            return [b"".join(streamed(int(query)))]
        case "/streamed":
            start_response("200 OK", [TEXT])
            return streamed(int(query))
        case "/file":
            start_response("200 OK", [TEXT])
            return cast("Pieces", environ["wsgi.file_wrapper"](Path(query).open("rb")))
        case "/cut":
            start_response("200 OK", [TEXT])
            return cut()
        case "/short":
            start_response("200 OK", [TEXT, ("Content-Length", "20000")])
            return iter([b"0123456789" * 1_000])
    return echo(environ, start_response)
