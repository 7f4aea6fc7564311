"""Answers of every kind and faults of every kind, a path for each.

A request names its token in the query (`token=...`) and in a header (`X-Token`); whatever is
answered by this application carries both.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from loadtests.apps.content import content, pieces

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

#: The pieces of answers that come in several.
PIECES = (1, 10, 4000, 20_000, 7)

OK = "200 OK"


class Deliberate(Exception):
    """The fault that was asked for."""


class Asked:
    """The part of a request that a path needs."""

    def __init__(self, environ: WSGIEnvironment, start_response: StartResponse) -> None:
        self.environ = environ
        self.start_response = start_response
        self.query = dict(parse_qsl(environ["QUERY_STRING"]))
        self.token = self.query.get("token", "none")

    @property
    def size(self) -> int:
        """Number of bytes to answer."""
        return int(self.query.get("size", "100"))

    def start(self, *headers: tuple[str, str], status: str = OK, exc_info: Any = None) -> Any:
        """Call start_response, with both tokens and the process among the headers."""
        own = [
            ("Content-Type", "application/octet-stream"),
            ("X-Token", self.token),
            ("X-Token-Header", self.environ.get("HTTP_X_TOKEN", "none")),
            ("X-Process", str(os.getpid())),
        ]
        return self.start_response(status, [*own, *headers], exc_info)

    def body(self) -> bytes:
        """The request's body, read in parts."""
        stream = self.environ["wsgi.input"]
        parts = []
        while part := stream.read(100_000):
            parts.append(part)
        return b"".join(parts)


# Answers


def small(asked: Asked) -> Iterable[bytes]:
    """A list of one item."""
    asked.start()
    return [content(asked.token, asked.size)]


def posted(asked: Asked) -> Iterable[bytes]:
    """Length and checksum of the body."""
    body = asked.body()
    asked.start()
    return [f"{asked.token} {len(body)} {zlib.crc32(body)}\n".encode("ascii")]


def unread(asked: Asked) -> Iterable[bytes]:
    """Leaves the body where it is."""
    return small(asked)


def streamed(asked: Asked) -> Iterator[bytes]:
    """Pieces of an unknown total."""
    asked.start()
    yield from pieces(asked.token, PIECES)


def measured(asked: Asked) -> Iterator[bytes]:
    """Pieces of a known total."""
    asked.start(("Content-Length", str(sum(PIECES))))
    yield from pieces(asked.token, PIECES)


def written(asked: Asked) -> Iterable[bytes]:
    """`write` of PEP 3333, then a list."""
    write = asked.start()
    *first, last = pieces(asked.token, PIECES)
    for piece in first:
        write(piece)
    return [last]


def large(asked: Asked) -> Iterable[bytes]:
    """Much at once."""
    return small(asked)


def generated(asked: Asked) -> Iterator[bytes]:
    """Much, piece by piece."""
    asked.start()
    whole = content(asked.token, asked.size)
    for at in range(0, len(whole), 30_000):
        yield whole[at : at + 30_000]


def file(asked: Asked) -> Iterable[bytes]:
    """A real file, which the kernel may send."""
    asked.start()
    stream = tempfile.TemporaryFile()  # noqa: SIM115 - the server closes it
    stream.write(content(asked.token, asked.size))
    stream.seek(0)
    wrapped: Iterable[bytes] = asked.environ["wsgi.file_wrapper"](stream)
    return wrapped


def nothing(asked: Asked) -> Iterable[bytes]:
    """204 has no content, even if the application gives some."""
    asked.start(status="204 No Content")
    return [b"must not be sent"]


def unchanged(asked: Asked) -> Iterable[bytes]:
    """Nor has 304."""
    asked.start(status="304 Not Modified")
    return [b"must not be sent"]


def sleeps(asked: Asked) -> Iterable[bytes]:
    """Waits, as for a database."""
    time.sleep(float(asked.query["seconds"]))
    return small(asked)


def restarts(asked: Asked) -> Iterable[bytes]:
    """Fails after start_response, and answers otherwise in time."""
    asked.start(("X-Dropped", "1"))
    try:
        raise Deliberate
    except Deliberate:
        asked.start(status="503 Service Unavailable", exc_info=sys.exc_info())
    return [content(asked.token, asked.size)]


def too_much(asked: Asked) -> Iterable[bytes]:
    """More than was announced: the rest must not reach the wire."""
    asked.start(("Content-Length", str(asked.size)))
    return [content(asked.token, asked.size), b"must not be sent"]


def too_much_generated(asked: Asked) -> Iterator[bytes]:
    """The same in pieces."""
    asked.start(("Content-Length", str(asked.size)))
    yield content(asked.token, asked.size)
    yield b"must not be sent"


class Closing:
    """An iterable whose close() fails."""

    def __init__(self, parts: list[bytes]) -> None:
        self.parts = parts

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.parts)

    def close(self) -> None:
        """Fail."""
        raise Deliberate


def close_raises(asked: Asked) -> Iterable[bytes]:
    """Everything is sent by the time this fails."""
    asked.start()
    return Closing(pieces(asked.token, PIECES))


# Faults before anything was sent


def raises_before(asked: Asked) -> Iterable[bytes]:
    """At once."""
    raise Deliberate


def raises_started(asked: Asked) -> Iterable[bytes]:
    """With status and headers given, nothing sent."""
    asked.start(("X-Dropped", "1"))
    raise Deliberate


def raises_first(asked: Asked) -> Iterator[bytes]:
    """A generator that fails before its first piece."""
    asked.start()
    if asked:
        raise Deliberate
    yield b""


def returns_none(asked: Asked) -> Any:
    """No iterable."""
    asked.start()


def returns_text(asked: Asked) -> Any:
    """An iterable, but not of bytes."""
    asked.start()
    return "text"


def returns_number(asked: Asked) -> Any:
    """No iterable either."""
    asked.start()
    return 42


def never_starts(asked: Asked) -> Iterable[bytes]:
    """A body without status."""
    return [b"must not be sent"]


def starts_twice(asked: Asked) -> Iterable[bytes]:
    """Without exc_info."""
    asked.start()
    asked.start()
    return [b"must not be sent"]


def starts_late(asked: Asked) -> Iterator[bytes]:
    """After the first piece."""
    yield b"must not be sent"
    asked.start()


def splits_value(asked: Asked) -> Iterable[bytes]:
    """A header value that would end the head."""
    asked.start(("X-Value", "a\r\nX-Injected: 1\r\n\r\nHTTP/1.1 200 OK"))
    return [b"must not be sent"]


def splits_name(asked: Asked) -> Iterable[bytes]:
    """A header name that would be two."""
    asked.start(("X-Injected: 1\r\nX-Name", "a"))
    return [b"must not be sent"]


def splits_status(asked: Asked) -> Iterable[bytes]:
    """A status that would be more."""
    asked.start(status="200 OK\r\nX-Injected: 1")
    return [b"must not be sent"]


def frames(asked: Asked) -> Iterable[bytes]:
    """A header that is the server's."""
    asked.start(("Transfer-Encoding", "chunked"))
    return [b"0\r\n\r\n"]


def two_lengths(asked: Asked) -> Iterable[bytes]:
    """Which one to believe?"""
    asked.start(("Content-Length", "5"), ("Content-Length", "6"))
    return [b"12345"]


def exits(asked: Asked) -> Iterable[bytes]:
    """SystemExit must not end the server."""
    sys.exit(3)


def interrupts(asked: Asked) -> Iterable[bytes]:
    """Nor KeyboardInterrupt."""
    raise KeyboardInterrupt


def exhausts_memory(asked: Asked) -> Iterable[bytes]:
    """An allocation that cannot succeed."""
    asked.start()
    return [bytes(1 << 62)]


def recurses(asked: Asked) -> Iterable[bytes]:
    """Without end."""
    return recurses(asked)


# Faults in the middle of an answer: its end must be missing


def raises_between(asked: Asked) -> Iterator[bytes]:
    """Two pieces are out."""
    asked.start()
    yield from pieces(asked.token, PIECES)[:2]
    raise Deliberate


def raises_after(asked: Asked) -> Iterator[bytes]:
    """All pieces are out, only the end is not."""
    asked.start()
    yield from pieces(asked.token, PIECES)
    raise Deliberate


def yields_text(asked: Asked) -> Iterator[Any]:
    """Bytes, then a str."""
    asked.start()
    yield content(asked.token, asked.size)
    yield "text"


def restarts_late(asked: Asked) -> Iterator[bytes]:
    """The head is out when start_response is called with exc_info: it raises that again."""
    asked.start()
    yield content(asked.token, asked.size)
    try:
        raise Deliberate
    except Deliberate:
        asked.start(status="503 Service Unavailable", exc_info=sys.exc_info())


def too_little(asked: Asked) -> Iterable[bytes]:
    """Less than was announced."""
    asked.start(("Content-Length", str(asked.size + 1)))
    return [content(asked.token, asked.size)]


def too_little_generated(asked: Asked) -> Iterator[bytes]:
    """The same in pieces."""
    asked.start(("Content-Length", str(asked.size + 1)))
    yield content(asked.token, asked.size)


class Endless:
    """Pieces until it is closed. It holds a descriptor: one that is never closed is counted."""

    def __init__(self, token: str) -> None:
        self._piece = content(token, 16_384)
        self._held = os.open(os.devnull, os.O_RDONLY)

    def __iter__(self) -> Iterator[bytes]:
        while True:
            yield self._piece
            # A client that is about to leave shall not find a gigabyte in its way.
            time.sleep(0.001)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._held)


def endless(asked: Asked) -> Iterable[bytes]:
    """Ends when the client leaves."""
    asked.start()
    return Endless(asked.token)


# The process itself


def tidies(asked: Asked) -> Iterable[bytes]:
    """Gives free memory back to the kernel: what is left then, somebody holds."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return small(asked)


def aborts(asked: Asked) -> Iterable[bytes]:
    """As a segmentation fault does."""
    os.abort()


def leaves(asked: Asked) -> Iterable[bytes]:
    """Without a word."""
    os._exit(3)


PATHS: dict[str, Callable[[Asked], Iterable[bytes]]] = {
    f"/{path.__name__}": path
    for path in (
        small, posted, unread, streamed, measured, written, large, generated, file, nothing,
        unchanged, sleeps, restarts, too_much, too_much_generated, close_raises, raises_before,
        raises_started, raises_first, returns_none, returns_text, returns_number, never_starts,
        starts_twice, starts_late, splits_value, splits_name, splits_status, frames, two_lengths,
        exits, interrupts, exhausts_memory, recurses, raises_between, raises_after, yields_text,
        restarts_late, too_little, too_little_generated, endless, tidies, aborts, leaves,
    )
}  # fmt: skip


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer by the path; what is no path of ours gets its body back."""
    asked = Asked(environ, start_response)
    path = PATHS.get(environ["PATH_INFO"])
    if path is not None:
        return path(asked)
    body = asked.body()
    asked.start()
    return [body]
