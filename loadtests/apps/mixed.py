"""The application of the soak: responses and faults of every kind, a path for each.

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
UNSENT = [b"must not be sent"]


class Deliberate(Exception):
    """The fault that was asked for."""


class Asked:
    """The part of a request that a path needs."""

    def __init__(self, environ: WSGIEnvironment, start_response: StartResponse) -> None:
        self.environ = environ
        self.start_response = start_response
        self.query = dict(parse_qsl(environ["QUERY_STRING"]))
        self.token = self.query.get("token", "none")
        self.size = int(self.query.get("size", "100"))

    def start(self, *headers: tuple[str, str], status: str = OK, exc_info: Any = None) -> Any:
        """Call start_response, with both tokens and the process among the headers."""
        own = [
            ("Content-Type", "application/octet-stream"),
            ("X-Token", self.token),
            ("X-Token-Header", self.environ.get("HTTP_X_TOKEN", "none")),
            ("X-Process", str(os.getpid())),
        ]
        return self.start_response(status, [*own, *headers], exc_info)

    def restart(self) -> None:
        """Fail, and call start_response for that."""
        try:
            raise Deliberate
        except Deliberate:
            self.start(status="503 Service Unavailable", exc_info=sys.exc_info())

    def body(self) -> bytes:
        """The request's body, read in parts."""
        stream = self.environ["wsgi.input"]
        return b"".join(iter(lambda: stream.read(100_000), b""))


Path = Callable[[Asked], Iterable[bytes]]


# Paths of one shape


def gives(*headers: tuple[str, str], status: str = OK, body: Any = UNSENT) -> Path:
    """Always the same status, headers and body; much of it is wrong."""

    def path(asked: Asked) -> Any:
        asked.start(*headers, status=status)
        return body

    return path


def announces(more: int, *rest: bytes) -> Path:
    """Some content and the rest, with a Content-Length that is that of the content, or more."""

    def path(asked: Asked) -> Iterable[bytes]:
        asked.start(("Content-Length", str(asked.size + more)))
        return [content(asked.token, asked.size), *rest]

    return path


def generates(path: Path) -> Path:
    """The same as a generator."""

    def generator(asked: Asked) -> Iterator[bytes]:
        yield from path(asked)

    return generator


def yields(
    *headers: tuple[str, str], count: int = len(PIECES), error: type[BaseException] | None = None
) -> Path:
    """A generator of so many pieces, which perhaps fails behind them."""

    def path(asked: Asked) -> Iterator[bytes]:
        asked.start(*headers)
        yield from pieces(asked.token, PIECES)[:count]
        if error:
            raise error

    return path


def fails(error: type[BaseException], *, started: bool = False) -> Path:
    """An exception at once, or with status and headers given."""

    def path(asked: Asked) -> Iterable[bytes]:
        if started:
            asked.start(("X-Dropped", "1"))
        raise error

    return path


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


def written(asked: Asked) -> Iterable[bytes]:
    """`write` of PEP 3333, then a list."""
    write = asked.start()
    *first, last = pieces(asked.token, PIECES)
    for piece in first:
        write(piece)
    return [last]


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


def sleeps(asked: Asked) -> Iterable[bytes]:
    """Waits, as for a database."""
    time.sleep(float(asked.query["seconds"]))
    return small(asked)


def restarts(asked: Asked) -> Iterable[bytes]:
    """Fails after start_response, and answers otherwise in time."""
    asked.start(("X-Dropped", "1"))
    asked.restart()
    return [content(asked.token, asked.size)]


class Closing:
    """An iterable whose close() fails: everything is sent by then."""

    def __init__(self, asked: Asked) -> None:
        asked.start()
        self._parts = pieces(asked.token, PIECES)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._parts)

    def close(self) -> None:
        """Fail."""
        raise Deliberate


class Endless:
    """Pieces until it is closed. It holds a descriptor: one that is never closed is counted."""

    def __init__(self, asked: Asked) -> None:
        asked.start()
        self._piece = content(asked.token, 16_384)
        self._held = os.open(os.devnull, os.O_RDONLY)

    def __iter__(self) -> Iterator[bytes]:
        while True:
            yield self._piece
            # A client that is about to leave shall not find a gigabyte in its way.
            time.sleep(0.001)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._held)


# Faults


def starts_twice(asked: Asked) -> Iterable[bytes]:
    """Without exc_info."""
    asked.start()
    asked.start()
    return UNSENT


def starts_late(asked: Asked) -> Iterator[bytes]:
    """After the first piece."""
    yield from UNSENT
    asked.start()


def exhausts_memory(asked: Asked) -> Iterable[bytes]:
    """An allocation that cannot succeed."""
    asked.start()
    return [bytes(1 << 62)]


def recurses(asked: Asked) -> Iterable[bytes]:
    """Without end."""
    return recurses(asked)


def yields_text(asked: Asked) -> Iterator[Any]:
    """Bytes, then a str."""
    yield from small(asked)
    yield "text"


def restarts_late(asked: Asked) -> Iterator[bytes]:
    """The head is out when start_response is called with exc_info: it raises that again."""
    yield from small(asked)
    asked.restart()


# The process itself


def tidies(asked: Asked) -> Iterable[bytes]:
    """Gives free memory back to the kernel: what is left then, somebody holds."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return small(asked)


PATHS: dict[str, Path] = {
    "small": small,
    "large": small,
    "generated": generated,
    "file": file,
    "posted": posted,
    "unread": small,  # the body stays where it is
    "sleeps": sleeps,
    "streamed": yields(),
    "measured": yields(("Content-Length", str(sum(PIECES)))),
    "written": written,
    "endless": Endless,
    # They have no content, even if the application gives some.
    "nothing": gives(status="204 No Content"),
    "unchanged": gives(status="304 Not Modified"),
    # What is more than was announced must not reach the wire.
    "too_much": announces(0, *UNSENT),
    "too_much_generated": generates(announces(0, *UNSENT)),
    "restarts": restarts,
    "close_raises": Closing,
    # Faults before anything was sent.
    "raises_before": fails(Deliberate),
    "raises_started": fails(Deliberate, started=True),
    "raises_first": yields(count=0, error=Deliberate),
    "returns_none": gives(body=None),
    "returns_text": gives(body="text"),
    "returns_number": gives(body=42),
    "never_starts": lambda asked: UNSENT,
    "starts_twice": starts_twice,
    "starts_late": starts_late,
    # A value that would end the head, a name that would be two, a status that would be more.
    "splits_value": gives(("X-Value", "a\r\nX-Injected: 1\r\n\r\nHTTP/1.1 200 OK")),
    "splits_name": gives(("X-Injected: 1\r\nX-Name", "a")),
    "splits_status": gives(status="200 OK\r\nX-Injected: 1"),
    "frames": gives(("Transfer-Encoding", "chunked"), body=[b"0\r\n\r\n"]),
    "two_lengths": gives(("Content-Length", "5"), ("Content-Length", "6"), body=[b"12345"]),
    # None of these must end the server.
    "exits": lambda asked: sys.exit(3),
    "interrupts": fails(KeyboardInterrupt),
    "exhausts_memory": exhausts_memory,
    "recurses": recurses,
    # Faults in the middle of an answer: its end must be missing.
    "raises_between": yields(count=2, error=Deliberate),
    "raises_after": yields(error=Deliberate),
    "yields_text": yields_text,
    "restarts_late": restarts_late,
    "too_little": announces(1),
    "too_little_generated": generates(announces(1)),
    # The process itself: it dies as by a segmentation fault, or without a word.
    "tidies": tidies,
    "aborts": lambda asked: os.abort(),
    "leaves": lambda asked: os._exit(3),
}


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer by the path; what is no path of ours gets its body back."""
    asked = Asked(environ, start_response)
    path = PATHS.get(environ["PATH_INFO"][1:])
    if path is not None:
        return path(asked)
    body = asked.body()
    asked.start()
    return [body]
