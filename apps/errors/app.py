"""Every way in which an application can fail its server, one by path. `/` lists them."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeAlias

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    Application: TypeAlias = Callable[[WSGIEnvironment, StartResponse], Any]

TEXT = [("Content-Type", "text/plain")]
WAYS: dict[str, Application] = {}


class Broken(Exception):
    """What these applications raise."""


def way(application: Application) -> Application:
    """Serve the function under its own name."""
    WAYS["/" + application.__name__.replace("_", "-")] = application
    return application


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Fail in the way of the path."""
    broken = WAYS.get(environ.get("PATH_INFO", ""))
    if broken is not None:
        return broken(environ, start_response)
    found = environ.get("PATH_INFO") in ("", "/")
    start_response("200 OK" if found else "404 Not Found", TEXT.copy())
    return ["".join(f"{path:24} {call.__doc__}\n" for path, call in WAYS.items()).encode()]


# Exceptions


@way
def raise_before(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Raise before start_response."""
    raise Broken("before start_response")


@way
def raise_after(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Raise after start_response, with nothing sent yet."""
    start_response("200 OK", TEXT.copy())
    raise Broken("after start_response")


@way
def raise_first(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
    """Raise in a generator, before its first piece."""
    start_response("200 OK", TEXT.copy())
    if start_response:
        raise Broken("before the first piece")
    yield b"never"


@way
def raise_between(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
    """Raise in a generator, between two pieces."""
    start_response("200 OK", TEXT.copy())
    yield b"first "
    raise Broken("between two pieces")


@way
def raise_after_write(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Raise after write() has sent something."""
    write = start_response("200 OK", TEXT.copy())
    write(b"written ")
    raise Broken("after write()")


@way
def raise_in_close(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Raise in close(), after a whole answer."""

    class Body(list[bytes]):
        def close(self) -> None:
            raise Broken("in close()")

    start_response("200 OK", TEXT.copy())
    return Body([b"whole"])


@way
def system_exit(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Call sys.exit()."""
    sys.exit(3)


@way
def keyboard_interrupt(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Raise KeyboardInterrupt, as nobody at a keyboard did."""
    raise KeyboardInterrupt


@way
def recursion(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Recurse without end."""
    return recursion(environ, start_response)


# exc_info, the one way to fail well


@way
def error_page(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Catch an exception and start again with exc_info: a page of the application's own."""
    start_response("200 OK", TEXT.copy())
    try:
        raise Broken("caught")
    except Broken:
        start_response("503 Service Unavailable", TEXT.copy(), sys.exc_info())
    return [b"sorry"]


@way
def error_page_late(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
    """Start again with exc_info after something was sent: raised again, by PEP 3333."""
    start_response("200 OK", TEXT.copy())
    yield b"first "
    try:
        raise Broken("too late for a page")
    except Broken:
        start_response("503 Service Unavailable", TEXT.copy(), sys.exc_info())
    yield b"never"


# start_response


@way
def never_started(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Never call start_response."""
    return [b"body"]


@way
def started_twice(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Call start_response twice, without exc_info."""
    start_response("200 OK", TEXT.copy())
    start_response("201 Created", TEXT.copy())
    return [b"body"]


@way
def bad_status(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """A status without a number."""
    start_response("Good", TEXT.copy())
    return [b"body"]


@way
def split_status(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """A status with a line break and a header behind it."""
    start_response("200 OK\r\nX-Injected: yes", TEXT.copy())
    return [b"body"]


@way
def number_status(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """A status that is a number."""
    start: Any = start_response
    start(200, TEXT.copy())
    return [b"body"]


# Headers


@way
def split_header(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """A header value with a line break and a header behind it."""
    start_response("200 OK", [*TEXT, ("X-Value", "a\r\nX-Injected: yes")])
    return [b"body"]


@way
def bad_header_name(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """A header name with a space and a colon."""
    start_response("200 OK", [*TEXT, ("X Bad:", "value")])
    return [b"body"]


@way
def unicode_header(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """A header value beyond Latin-1."""
    start_response("200 OK", [*TEXT, ("X-Value", "\u2603")])
    return [b"body"]


@way
def number_header(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """A header value that is a number."""
    start: Any = start_response
    start("200 OK", [*TEXT, ("Content-Length", 4)])
    return [b"body"]


@way
def dict_headers(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Headers as a dictionary."""
    start: Any = start_response
    start("200 OK", dict(TEXT))
    return [b"body"]


@way
def hop_header(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """A header that belongs to the connection, which is the server's."""
    start_response("200 OK", [*TEXT, ("Transfer-Encoding", "chunked")])
    return [b"body"]


@way
def two_lengths(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Two Content-Lengths that differ."""
    start_response("200 OK", [*TEXT, ("Content-Length", "4"), ("Content-Length", "8")])
    return [b"body"]


@way
def bad_length(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """A Content-Length that is no number."""
    start_response("200 OK", [*TEXT, ("Content-Length", "-4")])
    return [b"body"]


# Bodies


@way
def too_short(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Fewer bytes than the Content-Length, at once."""
    start_response("200 OK", [*TEXT, ("Content-Length", "100")])
    return [b"short"]


@way
def too_long(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """More bytes than the Content-Length, at once."""
    start_response("200 OK", [*TEXT, ("Content-Length", "5")])
    return [b"longer than five"]


@way
def too_short_pieces(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
    """Fewer bytes than the Content-Length, in pieces."""
    start_response("200 OK", [*TEXT, ("Content-Length", "100")])
    yield b"short"
    yield b"er"


@way
def too_long_pieces(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
    """More bytes than the Content-Length, in pieces."""
    start_response("200 OK", [*TEXT, ("Content-Length", "5")])
    yield b"longer "
    yield b"than five"


@way
def text_body(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """A list of text instead of bytes."""
    start_response("200 OK", TEXT.copy())
    return ["text"]


@way
def text_piece(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[Any]:
    """A piece of text between pieces of bytes."""
    start_response("200 OK", TEXT.copy())
    yield b"first "
    yield "text"


@way
def text_written(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Text through write()."""
    write: Any = start_response("200 OK", TEXT.copy())
    write("text")
    return []


@way
def bare_bytes(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Bytes instead of a list of bytes: an iterable of numbers."""
    start_response("200 OK", TEXT.copy())
    return b"bytes"


@way
def bare_text(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Text instead of a list of bytes."""
    start_response("200 OK", TEXT.copy())
    return "text"


@way
def no_body(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """None as the body."""
    start_response("200 OK", TEXT.copy())


@way
def number_body(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """A number as the body."""
    start_response("200 OK", TEXT.copy())
    return 42


@way
def body_of_204(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """A body for a status that has none."""
    start_response("204 No Content", [])
    return [b"body"]


@way
def endless(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
    """A body without end: only the client's leaving stops it."""
    start_response("200 OK", TEXT.copy())
    while True:
        yield b"." * 65536
