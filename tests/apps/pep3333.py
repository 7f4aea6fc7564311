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
from collections.abc import Callable, Iterable, Iterator
from wsgiref.validate import validator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

TEXT = ("Content-Type", "text/plain")

GOOD: dict[str, Callable[..., Any]] = {}
BAD: dict[str, Callable[..., Any]] = {}


def good(function: Callable[..., Any]) -> Callable[..., Any]:
    """Serve a function that keeps to the PEP, bare and checked."""
    GOOD["/" + function.__name__] = function
    return function


def bad(function: Callable[..., Any]) -> Callable[..., Any]:
    """Serve a function that does not, bare."""
    BAD["/" + function.__name__] = function
    return function


class Body:
    """An iterable that notes in the log when it is closed: `closed TOKEN`, the query string."""

    def __init__(self, environ: WSGIEnvironment, pieces: Iterable[bytes]) -> None:
        self._note = f"closed {environ['QUERY_STRING']}."
        self._errors = environ["wsgi.errors"]
        self._pieces = iter(pieces)

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def close(self) -> None:
        self._errors.write(self._note + "\n")


# start_response


@good
def plain(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """The usual."""
    start_response("200 OK", [TEXT])
    return [b"plain"]


@good
def late_empty_pieces(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
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
def replaced(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Starts again with exc_info before anything was sent."""
    start_response("200 OK", [TEXT, ("X-First", "yes"), ("Content-Length", "1000")])
    try:
        raise LookupError("not there")
    except LookupError:
        start_response("404 Not Found", [TEXT, ("X-Second", "yes")], sys.exc_info())
    return [b"replaced"]


@good
def headers_changed_later(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """The list belongs to the application, which may go on using it."""
    headers = [TEXT, ("X-Kept", "yes")]
    start_response("200 OK", headers)
    del headers[:]
    return [b"kept"]


# write()


@good
def written_and_returned(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Both: what is written comes first."""
    write = start_response("200 OK", [TEXT])
    write(b"one ")
    return [b"two ", b"three"]


@good
def written_result(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """What write() returns."""
    write = start_response("200 OK", [TEXT])
    return [repr([write(b""), write(b"written ")]).encode()]


@good
def written_large(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """More than the socket takes."""
    write = start_response("200 OK", [TEXT])
    for _ in range(1_000):
        write(b"0123456789" * 100)
    return []


# Iterables and close()


@good
def closing(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """close() behind the last piece."""
    start_response("200 OK", [TEXT])
    return Body(environ, [b"one ", b"two"])


@good
def closing_empty(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """close() without any piece."""
    start_response("200 OK", [TEXT])
    return Body(environ, [])


@good
def closing_generator(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """A generator's own close() runs its `finally`."""
    start_response("200 OK", [TEXT])
    try:
        yield b"one "
        yield b"two"
    finally:
        environ["wsgi.errors"].write(f"closed {environ['QUERY_STRING']}.\n")


@good
def closing_broken(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """close() although the iteration fails, before anything was sent."""
    start_response("200 OK", [TEXT])

    def pieces() -> Iterator[bytes]:
        if environ:
            raise LookupError("broken off")
        yield b"never"

    return Body(environ, pieces())


@good
def closing_broken_midway(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """close() although the iteration fails, with something sent."""
    start_response("200 OK", [TEXT])

    def pieces() -> Iterator[bytes]:
        yield b"one "
        raise LookupError("broken off")

    return Body(environ, pieces())


@good
def closing_endless(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Pieces for as long as somebody takes them."""
    start_response("200 OK", [TEXT])

    def pieces() -> Iterator[bytes]:
        while True:
            yield b"x" * 65_536

    return Body(environ, pieces())


@bad
def closing_list(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """A list of its own kind with a close(): known at once, and closed."""

    class Pieces(list[bytes]):
        def close(self) -> None:
            environ["wsgi.errors"].write(f"closed {environ['QUERY_STRING']}.\n")

    start_response("200 OK", [TEXT])
    return Pieces([b"one ", b"two"])


@bad
def closing_raises(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """close() that fails, behind a whole answer."""

    class Pieces(list[bytes]):
        def close(self) -> None:
            raise LookupError("close() failed")

    start_response("200 OK", [TEXT])
    return Pieces([b"one ", b"two"])


@bad
def sequence(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Only __getitem__: iterable all the same."""

    class Pieces:
        def __getitem__(self, index: int) -> bytes:
            return [b"one ", b"two"][index]

    start_response("200 OK", [TEXT])
    return Pieces()


# wsgi.file_wrapper


def _file(environ: WSGIEnvironment, content: bytes) -> Any:
    file = tempfile.TemporaryFile()  # noqa: SIM115
    file.write(content)
    file.seek(int(environ["QUERY_STRING"] or 0))
    return file


@good
def file(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """A file on disk, from the position where it stands: the query."""
    start_response("200 OK", [TEXT])
    return environ["wsgi.file_wrapper"](_file(environ, b"0123456789" * 30_000))


@good
def file_length(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """With a Content-Length, and a block size."""
    start_response("200 OK", [TEXT, ("Content-Length", "300000")])
    return environ["wsgi.file_wrapper"](_file(environ, b"0123456789" * 30_000), 4_096)


@good
def file_empty(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Nothing in it."""
    start_response("200 OK", [TEXT])
    return environ["wsgi.file_wrapper"](_file(environ, b""))


@good
def file_like(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Only read() and close(), no descriptor."""

    class File(io.BytesIO):
        def fileno(self) -> int:
            raise OSError("no descriptor")

        def close(self) -> None:
            if not self.closed:
                environ["wsgi.errors"].write(f"closed {environ['QUERY_STRING']}.\n")
            super().close()

    start_response("200 OK", [TEXT])
    return environ["wsgi.file_wrapper"](File(b"0123456789" * 30_000))


@good
def file_pipe(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """A descriptor that is no file: a pipe has neither size nor position."""
    reader, writer = os.pipe()
    # Not os.close(), which gevent would put off.
    with open(writer, "wb") as end:
        end.write(b"from a pipe")
    start_response("200 OK", [TEXT])
    return environ["wsgi.file_wrapper"](open(reader, "rb"))


@good
def file_without_size(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Its size is said to be 0, as that of everything below /proc."""
    start_response("200 OK", [TEXT])
    return environ["wsgi.file_wrapper"](open("/proc/version", "rb"))


@bad
def file_shorter(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """A Content-Length below the size of the file."""
    start_response("200 OK", [TEXT, ("Content-Length", "10")])
    return environ["wsgi.file_wrapper"](_file(environ, b"0123456789" * 30))


# wsgi.input


def _answer(start_response: StartResponse, value: object) -> Iterable[bytes]:
    body = json.dumps(value, default=lambda octets: octets.decode("latin-1")).encode()
    start_response("200 OK", [("Content-Type", "application/json")])
    return [body]


@good
def read_some(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """read(n), beyond the end too."""
    body = environ["wsgi.input"]
    return _answer(start_response, [body.read(3), body.read(0), body.read(5), body.read(1_000)])


@good
def read_lines(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """readline(), readline(n), then readlines()."""
    body = environ["wsgi.input"]
    return _answer(start_response, [body.readline(), body.readline(2), *body.readlines()])


@good
def read_iterated(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """for line in wsgi.input."""
    return _answer(start_response, list(environ["wsgi.input"]))


@bad
def read_all(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """read() and read(-1): an old checker wants exactly one argument."""
    body = environ["wsgi.input"]
    return _answer(start_response, [body.read(), body.read(-1), body.readlines(5)])


@bad
def read_hint(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """readlines(hint) may stop behind the line in which the hint is reached."""
    return _answer(start_response, environ["wsgi.input"].readlines(1))


@good
def read_nothing(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """The body is left where it is."""
    return _answer(start_response, None)


@good
def errors(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """wsgi.errors: write, writelines, flush, print; text beyond ASCII."""
    stream = environ["wsgi.errors"]
    stream.write("noted \N{SNOWMAN}\n")
    stream.writelines(["line one\n", "line two\n"])
    print("printed", file=stream)
    stream.flush()
    return _answer(start_response, None)


# What is wrong with an answer


def wrong(status: Any = "200 OK", headers: Any = (TEXT,), pieces: Any = (b"body",)) -> Any:
    """An application that answers exactly so."""

    def answer(environ: WSGIEnvironment, start_response: Any) -> Any:
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
def never_started_empty(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """`start_response` is never called, and there is nothing to send."""
    return []


@bad
def raised_midway(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """An exception when a part was sent, in chunks."""
    start_response("200 OK", [TEXT])
    yield b"part"
    raise LookupError("midway")


@bad
def raised_midway_length(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """The same with a Content-Length."""
    start_response("200 OK", [TEXT, ("Content-Length", "8")])
    yield b"part"
    raise LookupError("midway")


@bad
def exc_info_too_late(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
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
def too_many_written(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """By write()."""
    write = start_response("200 OK", [TEXT, ("Content-Length", "5")])
    write(b"right")
    write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    return [b"wrong"]


@bad
def too_many_caught(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
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
def stale_keep(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Keeps its write()."""
    Kept.write = start_response("200 OK", [TEXT])
    return [b"kept"]


@bad
def stale_use(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
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


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Answer in the way of the path, under the eyes of wsgiref.validate."""
    return checked[environ["PATH_INFO"]](environ, start_response)


def bare(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
    """Answer in the way of the path."""
    path = environ["PATH_INFO"]
    function = GOOD.get(path) or BAD.get(path) or WRONG[path.removeprefix("/wrong/")]
    return function(environ, start_response)
