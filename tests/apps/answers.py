"""An application with responses of every shape, one by path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

Application: TypeAlias = "Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]"

TEXT = ("Content-Type", "text/plain")


def one(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """One piece, no length."""
    start_response("200 OK", [TEXT])
    return [b"hello"]


def several(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Some pieces that are known at once, an empty one among them, no length."""
    start_response("200 OK", [TEXT])
    return [b"one ", b"", b"two ", b"three"]


def pair(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """A tuple."""
    start_response("200 OK", [TEXT])
    return (b"one ", b"two")


def empty(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """No pieces."""
    start_response("200 OK", [TEXT])
    return []


def generated(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
    """Pieces that come one by one, an empty one among them, no length."""
    start_response("200 OK", [TEXT])
    yield b"one "
    yield b""
    yield b"two "
    yield b"three"


def nothing_generated(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
    """A generator without any."""
    start_response("200 OK", [TEXT])
    return iter(())


def generated_length(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
    """Pieces that come one by one, with their length."""
    start_response("200 OK", [TEXT, ("Content-Length", "7")])
    yield b"one "
    yield b"two"


def large(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """A list of 5,000,000 octets: more than any buffer on the way."""
    start_response("200 OK", [TEXT])
    return [b"0123456789" * 500_000]


def large_generated(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
    """The same in pieces of 1,000."""
    start_response("200 OK", [TEXT])
    for _ in range(5_000):
        yield b"0123456789" * 100


def many_pieces(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """More pieces than one system call takes."""
    start_response("200 OK", [TEXT])
    return [b"0123456789"] * 5_000


def no_content(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """204."""
    start_response("204 No Content", [])
    return []


def not_modified(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """304."""
    start_response("304 Not Modified", [("ETag", '"1"')])
    return []


def dated(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Its own Date and Server, which stand."""
    start_response("200 OK", [TEXT, ("Date", "Thu, 01 Jan 1970 00:00:00 GMT"), ("Server", "mine")])
    return [b"then"]


def cookies(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """One name more than once; the order matters."""
    start_response("200 OK", [TEXT, ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")])
    return [b""]


def latin(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Octets above ASCII in a header and in the reason."""
    start_response("200 Tr\xe8s bien", [TEXT, ("X-Word", "caf\xe9")])
    return [b""]


def odd_status(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """A status that nobody has registered, without a reason."""
    start_response("299 ", [TEXT])
    return [b"odd"]


ANSWERS: dict[str, Application] = {
    f"/{answer.__name__}": answer
    for answer in (
        one, several, pair, empty, generated, nothing_generated, generated_length, large,
        large_generated, many_pieces, no_content, not_modified, dated, cookies, latin,
        odd_status,
    )
}  # fmt: skip


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer in the way of the path."""
    return ANSWERS[environ["PATH_INFO"]](environ, start_response)
