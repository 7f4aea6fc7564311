"""The application that the clients of `make interop` talk to.

/hello         a line
/digest        the length and the SHA-256 of the body
/hints         early hints, and then a line
/events?NAME   an event; a second one when somebody has asked for /next?NAME
/endless?NAME  pieces without end; /left?NAME says whether the response was closed
/large         10 MB
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

LARGE = bytes(range(250)) * 40_000
asked: set[str] = set()
left: set[str] = set()


def events(name: str) -> Iterator[bytes]:
    yield b"data: 1\n\n"
    while name not in asked:
        time.sleep(0.002)
    yield b"data: 2\n\n"


def endless(name: str) -> Iterator[bytes]:
    try:
        while True:
            yield 10_000 * b"x"
            time.sleep(0.001)
    finally:
        left.add(name)


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    path, name = environ["PATH_INFO"], environ["QUERY_STRING"]
    answer: Iterable[bytes] = [b"hello\n"]
    match path:
        case "/digest":
            body = environ["wsgi.input"].read()
            answer = [f"{len(body)} {hashlib.sha256(body).hexdigest()}\n".encode()]
        case "/hints":
            environ["wsgi.early_hints"]([("Link", "</style.css>; rel=preload")])
        case "/events":
            answer = events(name)
        case "/next":
            asked.add(name)
        case "/endless":
            answer = endless(name)
        case "/left":
            answer = [b"yes\n" if name in left else b"no\n"]
        case "/large":
            answer = [LARGE]
    kind = "text/event-stream" if path == "/events" else "text/plain"
    start_response("200 OK", [("Content-Type", kind)])
    return answer
