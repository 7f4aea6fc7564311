"""Answers as the query asks for them: `shape`, `size` of the body, `field` lines, `status`."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

#: Rows of JSON: like most answers, of parts that come again and again.
ROW = '{{"id": {0}, "name": "entry number {0}", "tags": ["one", "two"], "active": true}},\n'

#: Pieces of an answer in pieces.
PIECES = 20


@cache
def text(size: int) -> bytes:
    """So many bytes of text."""
    rows = "".join(ROW.format(number) for number in range(size // 60 + 1))
    return rows.encode()[:size]


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer in the shape of the query."""
    query = parse_qs(environ["QUERY_STRING"])
    lines = [line.partition(":") for line in query.get("field", ["Content-Type:application/json"])]
    fields = [(name, value) for name, _, value in lines if value != "none"]
    if not any(name == "Content-Type" for name, _, _ in lines):
        fields.append(("Content-Type", "application/json"))
    body = text(int(query.get("size", ["10000"])[0]))
    status = query.get("status", ["200 OK"])[0]
    shape: Callable[..., Iterable[bytes]] = globals()["answer_" + query.get("shape", ["list"])[0]]
    return shape(environ, query, body, lambda: start_response(status, fields))


def pieces_of(body: bytes) -> list[bytes]:
    """The body in pieces of the same length."""
    step = len(body) // PIECES + 1
    return [body[at : at + step] for at in range(0, len(body), step)]


def answer_list(_: Any, __: Any, body: bytes, start: Any) -> list[bytes]:
    """The whole body."""
    start()
    return [body]


def answer_parts(_: Any, __: Any, body: bytes, start: Any) -> list[bytes]:
    """The whole body in several parts."""
    start()
    return [b"", *pieces_of(body), b""]


def answer_generator(_: Any, __: Any, body: bytes, start: Any) -> Iterator[bytes]:
    """One piece after the other, at once."""
    start()
    yield from pieces_of(body)


def answer_one(_: Any, __: Any, body: bytes, start: Any) -> Iterator[bytes]:
    """All of it as one piece, as frameworks do."""
    start()
    yield body


def answer_write(_: Any, __: Any, body: bytes, start: Any) -> list[bytes]:
    """By `write`."""
    write = start()
    for piece in pieces_of(body):
        write(piece)
    return []


def answer_file(environ: Any, query: Any, _: bytes, start: Any) -> Any:
    """A file, by `wsgi.file_wrapper`."""
    start()
    return environ["wsgi.file_wrapper"](open(query["path"][0], "rb"), 1000)


def answer_gate(_: Any, query: Any, __: bytes, start: Any) -> Iterator[bytes]:
    """Events, each when the file of its number is there."""
    start()
    for number in range(3):
        if number:
            while not Path(f"{query['gate'][0]}{number}").exists():
                time.sleep(0.001)
        yield f"data: event {number}\n\n".encode()


def answer_empty(_: Any, __: Any, ___: bytes, start: Any) -> list[bytes]:
    """No body."""
    start()
    return []
