"""Everything PEP 3333 lets an application do, and most of what it forbids, one by path.

`application` is checked by wsgiref.validate on both sides, `bare` is not: the checker wraps what it
passes on, and refuses by itself what the server has to refuse.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any
from wsgiref.validate import validator

from tests.apps.basics import TEXT, Environ, Pieces, StartResponse

Application = Callable[..., Any]

#: Those that keep to the PEP are served bare and checked, the others bare.
GOOD: dict[str, Application] = {}
BAD: dict[str, Application] = {}


def good(function: Application) -> Application:
    GOOD["/" + function.__name__] = function
    return function


def bad(function: Application) -> Application:
    BAD["/" + function.__name__] = function
    return function


def sends(make: Callable[[Environ], Any], *headers: tuple[str, str]) -> Application:
    """An application that returns what `make` does."""

    def answer(environ: Environ, start_response: StartResponse) -> Any:
        start_response("200 OK", [TEXT, *headers])
        return make(environ)

    return answer


def reads(read: Callable[[Any], object]) -> Application:
    """An application that answers with what it reads of `wsgi.input`, as JSON."""

    def answer(environ: Environ, start_response: StartResponse) -> Any:
        found = read(environ["wsgi.input"])
        body = json.dumps(found, default=lambda octets: octets.decode("latin-1")).encode()
        start_response("200 OK", [("Content-Type", "application/json")])
        return [body]

    return answer


def note(environ: Environ) -> None:
    """Note `closed TOKEN` in the log; the token is the query string."""
    environ["wsgi.errors"].write(f"closed {environ['QUERY_STRING']}.\n")


class Body:
    """An iterable that notes when it is closed."""

    def __init__(self, environ: Environ, pieces: Pieces) -> None:
        self._environ = environ
        self._pieces = iter(pieces)

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def close(self) -> None:
        note(self._environ)


GOOD["/plain"] = sends(lambda _: [b"plain"])


# start_response


@good
def late_empty_pieces(environ: Environ, start_response: StartResponse) -> Any:
    """Empty pieces before any content: the header section may still change."""
    start_response("200 OK", [TEXT])
    yield b""
    yield b""
    try:
        raise LookupError("changed its mind")
    except LookupError:
        start_response("404 Not Found", [TEXT], sys.exc_info())
    yield b"changed"


@good
def replaced(environ: Environ, start_response: StartResponse) -> Any:
    """Starts again with exc_info before anything was sent."""
    start_response("200 OK", [TEXT, ("X-First", "yes"), ("Content-Length", "1000")])
    try:
        raise LookupError("not there")
    except LookupError:
        start_response("404 Not Found", [TEXT, ("X-Second", "yes")], sys.exc_info())
    return [b"replaced"]


@good
def headers_changed_later(environ: Environ, start_response: StartResponse) -> Any:
    """The list belongs to the application, which may go on using it."""
    headers = [TEXT, ("X-Kept", "yes")]
    start_response("200 OK", headers)
    del headers[:]
    return [b"kept"]


# write()


@good
def written_and_returned(environ: Environ, start_response: StartResponse) -> Any:
    """Both: what is written comes first."""
    write = start_response("200 OK", [TEXT])
    write(b"one ")
    return [b"two ", b"three"]


@good
def written_result(environ: Environ, start_response: StartResponse) -> Any:
    """What write() returns."""
    write = start_response("200 OK", [TEXT])
    return [repr([write(b""), write(b"written ")]).encode()]


@good
def written_large(environ: Environ, start_response: StartResponse) -> Any:
    """More than the socket takes."""
    write = start_response("200 OK", [TEXT])
    for _ in range(1_000):
        write(b"0123456789" * 100)
    return []


# Iterables and close()


@good
def closing_generator(environ: Environ, start_response: StartResponse) -> Any:
    """A generator's own close() runs its `finally`."""
    start_response("200 OK", [TEXT])
    try:
        yield b"one "
        yield b"two"
    finally:
        note(environ)


def broken_off(*pieces: bytes) -> Iterator[bytes]:
    yield from pieces
    raise LookupError("broken off")


class Closing(list[bytes]):
    """A list with a close(): known at once, and closed."""

    def __init__(self, close: Callable[[], None]) -> None:
        super().__init__([b"one ", b"two"])
        self.close = close


def fail() -> None:
    raise LookupError("close() failed")


class Sequence:
    """Only __getitem__: iterable all the same."""

    def __getitem__(self, index: int) -> bytes:
        return [b"one ", b"two"][index]


GOOD |= {
    "/closing": sends(lambda environ: Body(environ, [b"one ", b"two"])),
    "/closing_empty": sends(lambda environ: Body(environ, [])),
    # close() although the iteration fails: before anything was sent, and with something sent.
    "/closing_broken": sends(lambda environ: Body(environ, broken_off())),
    "/closing_broken_midway": sends(lambda environ: Body(environ, broken_off(b"one "))),
    # Pieces for as long as somebody takes them.
    "/closing_endless": sends(lambda environ: Body(environ, repeat(b"x" * 65_536))),
}
BAD |= {
    "/closing_list": sends(lambda environ: Closing(lambda: note(environ))),
    "/closing_raises": sends(lambda environ: Closing(fail)),
    "/sequence": sends(lambda environ: Sequence()),
}


# wsgi.file_wrapper


def wrapped(environ: Environ, file: Any, *block: int) -> Any:
    return environ["wsgi.file_wrapper"](file, *block)


def temporary(environ: Environ, content: bytes) -> Any:
    """A file on disk, at the position of the query."""
    file = tempfile.TemporaryFile()  # noqa: SIM115
    file.write(content)
    file.seek(int(environ["QUERY_STRING"] or 0))
    return file


class FileLike(io.BytesIO):
    """Only read() and close(), no descriptor."""

    def __init__(self, environ: Environ, content: bytes) -> None:
        super().__init__(content)
        self._environ = environ

    def fileno(self) -> int:
        raise OSError("no descriptor")

    def close(self) -> None:
        if not self.closed:
            note(self._environ)
        super().close()


def pipe() -> Any:
    """A descriptor that is no file: a pipe has neither size nor position."""
    reader, writer = os.pipe()
    # Not os.close(), which gevent would put off.
    with open(writer, "wb") as end:
        end.write(b"from a pipe")
    return open(reader, "rb")


def of_kernel() -> Any:
    """A file whose size is said to be 0, as that of everything below /proc."""
    return open("/proc/version", "rb")


DIGITS = b"0123456789" * 30_000

GOOD |= {
    "/file": sends(lambda environ: wrapped(environ, temporary(environ, DIGITS))),
    "/file_length": sends(
        lambda environ: wrapped(environ, temporary(environ, DIGITS), 4_096),
        ("Content-Length", "300000"),
    ),
    "/file_empty": sends(lambda environ: wrapped(environ, temporary(environ, b""))),
    "/file_like": sends(lambda environ: wrapped(environ, FileLike(environ, DIGITS))),
    "/file_pipe": sends(lambda environ: wrapped(environ, pipe())),
    "/file_without_size": sends(lambda environ: wrapped(environ, of_kernel())),
}
BAD["/file_shorter"] = sends(
    lambda environ: wrapped(environ, temporary(environ, b"0123456789" * 30)),
    ("Content-Length", "10"),
)


# wsgi.input and wsgi.errors

GOOD |= {
    # Beyond the end too.
    "/read_some": reads(lambda body: [body.read(3), body.read(0), body.read(5), body.read(1_000)]),
    "/read_lines": reads(lambda body: [body.readline(), body.readline(2), *body.readlines()]),
    "/read_iterated": reads(list),
    # The body is left where it is.
    "/read_nothing": reads(lambda body: None),
}
BAD |= {
    # An old checker wants exactly one argument of read().
    "/read_all": reads(lambda body: [body.read(), body.read(-1), body.readlines(5)]),
    # It may stop behind the line in which the hint is reached.
    "/read_hint": reads(lambda body: body.readlines(1)),
}


@good
def errors(environ: Environ, start_response: StartResponse) -> Any:
    """write, writelines, flush, print; text beyond ASCII."""
    stream = environ["wsgi.errors"]
    stream.write("noted \N{SNOWMAN}\n")
    stream.writelines(["line one\n", "line two\n"])
    print("printed", file=stream)
    stream.flush()
    return GOOD["/read_nothing"](environ, start_response)


# What is wrong with an answer


def wrong(status: Any = "200 OK", headers: Any = (TEXT,), pieces: Any = (b"body",)) -> Any:
    """An application that answers exactly so."""

    def answer(environ: Environ, start_response: Any) -> Any:
        start_response(status, list(headers) if isinstance(headers, tuple) else headers)
        return list(pieces) if isinstance(pieces, tuple) else pieces

    return answer


class GeneratedText:
    """Pieces that come one by one, and are no octets."""

    def __iter__(self) -> Iterator[str]:
        yield "body"


WRONG = {
    "status-bytes": wrong(status=b"200 OK"),
    "status-number": wrong(status=200),
    "status-none": wrong(status=None),
    "status-empty": wrong(status=""),
    "headers-dict": wrong(headers={"Content-Type": "text/plain"}),
    "headers-none": wrong(headers=None),
    "headers-string": wrong(headers="Content-Type: text/plain"),
    "header-triple": wrong(headers=(("A", "b", "c"),)),
    "header-string": wrong(headers=("Content-Type",)),
    "name-bytes": wrong(headers=((b"X-Name", "value"),)),
    "value-bytes": wrong(headers=(("X-Name", b"value"),)),
    "value-number": wrong(headers=(("X-Name", 5),)),
    "value-none": wrong(headers=(("X-Name", None),)),
    "piece-text": wrong(pieces=("body",)),
    "piece-none": wrong(pieces=(None,)),
    "piece-number": wrong(pieces=(5,)),
    "piece-text-second": wrong(pieces=(b"", "body")),
    "generated-text": wrong(pieces=GeneratedText()),
    "body-none": wrong(pieces=None),
    "body-number": wrong(pieces=5),
    "body-text": wrong(pieces="body"),
}


@bad
def never_started_empty(environ: Environ, start_response: StartResponse) -> Any:
    """`start_response` is never called, and there is nothing to send."""
    return []


@bad
def raised_midway(environ: Environ, start_response: StartResponse, *length: tuple[str, str]) -> Any:
    """An exception when a part was sent, in chunks."""
    start_response("200 OK", [TEXT, *length])
    yield b"part"
    raise LookupError("midway")


@bad
def raised_midway_length(environ: Environ, start_response: StartResponse) -> Any:
    yield from raised_midway(environ, start_response, ("Content-Length", "8"))


@bad
def exc_info_too_late(environ: Environ, start_response: StartResponse) -> Any:
    """exc_info with the head sent: the exception comes back."""
    start_response("200 OK", [TEXT])
    yield b"part"
    try:
        raise LookupError("too late")
    except LookupError:
        start_response("500 Internal Server Error", [TEXT], sys.exc_info())
    yield b"never"


# Too few and too many octets


@bad
def too_many_written(environ: Environ, start_response: StartResponse) -> Any:
    """By write()."""
    write = start_response("200 OK", [TEXT, ("Content-Length", "5")])
    write(b"right")
    write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    return [b"wrong"]


@bad
def too_many_caught(environ: Environ, start_response: StartResponse) -> Any:
    """By write(); the log gets what that raises for each piece."""
    write = start_response("200 OK", [TEXT, ("Content-Length", "5")])
    said = []
    for piece in (b"rig", b"", b"htwrong", b"", b"wrong"):
        try:
            said.append(str(write(piece)))
        except ValueError as error:
            said.append(f"ValueError: {error}")
    environ["wsgi.errors"].write(f"{environ['REQUEST_METHOD']} {said}\n")
    return [b""]


# What outlives its request


class Kept:
    """The write() of a request that is over."""

    write: Callable[[bytes], object] | None = None


@bad
def stale_keep(environ: Environ, start_response: StartResponse) -> Any:
    """Keeps its write()."""
    Kept.write = start_response("200 OK", [TEXT])
    return [b"kept"]


@bad
def stale_use(environ: Environ, start_response: StartResponse) -> Any:
    """Calls the kept one: what it writes must not become part of this answer."""
    start_response("200 OK", [TEXT])
    said = "nothing"
    if Kept.write is not None:
        try:
            Kept.write(b"from an earlier request")
        except Exception as error:
            said = type(error).__name__
    return [said.encode()]


checked = {path: validator(function) for path, function in GOOD.items()}


def application(environ: Environ, start_response: StartResponse) -> Any:
    """Answer in the way of the path, under the eyes of wsgiref.validate."""
    return checked[environ["PATH_INFO"]](environ, start_response)


def bare(environ: Environ, start_response: StartResponse) -> Any:
    """Answer in the way of the path."""
    path = environ["PATH_INFO"]
    function = GOOD.get(path) or BAD.get(path) or WRONG[path.removeprefix("/wrong/")]
    return function(environ, start_response)
