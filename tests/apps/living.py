"""Responses with and without HTML pages, one case by path, for tests of live pages.

`/text` shows the environment variable TEXT_FILE's content, which a test changes.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

HTML = ("Content-Type", "text/html; charset=utf-8")
PAGE = b"<p>page</p></body></html>\n"

#: How often each path's body was closed.
closed: dict[str, int] = {}


class Body:
    """An iterable that counts how often it is closed."""

    def __init__(self, path: str, pieces: Iterable[bytes]) -> None:
        self.path = path
        self.pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.pieces)

    def close(self) -> None:
        """Count."""
        closed[self.path] = closed.get(self.path, 0) + 1


def late(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
    """Begin when the first piece is asked for."""
    start_response("200 OK", [HTML])
    yield b"<p>late"
    yield b"</p>"


def written(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Write by `write`."""
    start_response("200 OK", [HTML])(b"<p>written")
    return [b"</p>"]


def twice(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Begin a page, and then say that it has failed."""
    start_response("200 OK", [HTML, ("Content-Length", str(len(PAGE)))])
    try:
        raise ValueError("on second thoughts")
    except ValueError:
        start_response("500 Oh", [("Content-Type", "text/plain")], sys.exc_info())
    return [b"failed"]


def fails(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
    """Fail when half of the page is on its way."""
    start_response("200 OK", [HTML])
    yield b"<p>half"
    raise ValueError("no more")


def tuple_(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Give headers that are no list."""
    start_response("200 OK", (HTML,))  # type: ignore[arg-type]
    return [PAGE]


def file(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """A page from a file."""
    start_response("200 OK", [HTML, ("Content-Length", str(len(PAGE)))])
    name = Path(os.environ["TEXT_FILE"]).with_name("page.html")
    name.write_bytes(PAGE)
    wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](name.open("rb"))
    return wrapped


def asked(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """What the application gets of what browsers say of their caches."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    names = ("HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE", "HTTP_ACCEPT_ENCODING", "HTTP_RANGE")
    return [repr([environ.get(name) for name in names]).encode()]


def text(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The text of the file."""
    start_response("200 OK", [HTML])
    return [Path(os.environ["TEXT_FILE"]).read_bytes()]


def counted(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """How often the body of a path was closed."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(closed.get(environ["QUERY_STRING"], 0)).encode()]


SPECIAL: dict[str, Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]] = {
    f"/{function.__name__.rstrip('_')}": function
    for function in (late, written, twice, fails, tuple_, file, asked, text, counted)
}


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with a page as the query says: `status`, and headers as `Name:value`, `|` between."""
    path = environ["PATH_INFO"]
    if path in SPECIAL:
        return SPECIAL[path](environ, start_response)
    from urllib.parse import unquote

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
