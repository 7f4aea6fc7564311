"""Responses with and without HTML pages, one case by path, for tests of live pages.

`/text` shows the environment variable TEXT_FILE's content, which a test changes.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast
from urllib.parse import unquote

from tests.apps.basics import TEXT, Environ, Pieces, StartResponse, say

HTML = ("Content-Type", "text/html; charset=utf-8")
PAGE = b"<p>page</p></body></html>\n"

#: How often each path's body was closed.
closed: dict[str, int] = {}


class Body:
    """An iterable that counts how often it is closed."""

    def __init__(self, path: str, pieces: Pieces) -> None:
        self.path = path
        self.pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.pieces)

    def close(self) -> None:
        closed[self.path] = closed.get(self.path, 0) + 1


def late(environ: Environ, start_response: StartResponse) -> Iterator[bytes]:
    """Begin when the first piece is asked for."""
    start_response("200 OK", [HTML])
    yield b"<p>late"
    yield b"</p>"


def written(environ: Environ, start_response: StartResponse) -> Pieces:
    start_response("200 OK", [HTML])(b"<p>written")
    return [b"</p>"]


def twice(environ: Environ, start_response: StartResponse) -> Pieces:
    """Begin a page, and then say that it has failed."""
    start_response("200 OK", [HTML, ("Content-Length", str(len(PAGE)))])
    try:
        raise ValueError("on second thoughts")
    except ValueError:
        start_response("500 Oh", [TEXT], sys.exc_info())
    return [b"failed"]


def fails(environ: Environ, start_response: StartResponse) -> Iterator[bytes]:
    """Fail when half of the page is on its way."""
    start_response("200 OK", [HTML])
    yield b"<p>half"
    raise ValueError("no more")


def tuple_(environ: Environ, start_response: StartResponse) -> Pieces:
    """Give headers that are no list."""
    start_response("200 OK", (HTML,))  # type: ignore[arg-type]
    return [PAGE]


def file(environ: Environ, start_response: StartResponse) -> Pieces:
    """A page from a file."""
    start_response("200 OK", [HTML, ("Content-Length", str(len(PAGE)))])
    name = Path(os.environ["TEXT_FILE"]).with_name("page.html")
    name.write_bytes(PAGE)
    return cast("Pieces", environ["wsgi.file_wrapper"](name.open("rb")))


def asked(environ: Environ, start_response: StartResponse) -> Pieces:
    """What the application gets of what browsers say of their caches."""
    names = ("HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE", "HTTP_ACCEPT_ENCODING", "HTTP_RANGE")
    return say(start_response, repr([environ.get(name) for name in names]))


def text(environ: Environ, start_response: StartResponse) -> Pieces:
    start_response("200 OK", [HTML])
    return [Path(os.environ["TEXT_FILE"]).read_bytes()]


def counted(environ: Environ, start_response: StartResponse) -> Pieces:
    """How often the body of a path was closed."""
    return say(start_response, str(closed.get(environ["QUERY_STRING"], 0)))


SPECIAL: dict[str, Callable[[Environ, StartResponse], Pieces]] = {
    f"/{function.__name__.rstrip('_')}": function
    for function in (late, written, twice, fails, tuple_, file, asked, text, counted)
}


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Answer with a page as the query says: `status`, and headers as `Name:value`, `|` between."""
    path = environ["PATH_INFO"]
    if path in SPECIAL:
        return SPECIAL[path](environ, start_response)
    status, headers = "200 OK", [HTML]
    for part in filter(None, unquote(environ["QUERY_STRING"]).split("|")):
        name, _, value = part.partition(":")
        if name == "status":
            status = value
        else:
            headers = [header for header in headers if header[0] != name] + [(name, value)]
    start_response(status, headers)
    match path:
        case "/list":
            return [PAGE[:5], PAGE[5:]]
        case "/pieces":
            return Body(path, [PAGE[:5], PAGE[5:]])
        case "/stream":
            return io.BytesIO(PAGE)
        case "/nothing":
            return []
    return [PAGE]
