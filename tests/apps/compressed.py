"""Answers as the query asks for them: `shape`, `size` of the body, `field` lines, `status`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import cast
from urllib.parse import parse_qs

from tests.apps.basics import Environ, Pieces, StartResponse, wait_for_file

#: Rows of JSON: like most answers, of parts that come again and again.
ROW = '{{"id": {0}, "name": "entry number {0}", "tags": ["one", "two"], "active": true}},\n'

#: Pieces of an answer in pieces.
PIECES = 20


@cache
def text(size: int) -> bytes:
    """So many bytes of text."""
    rows = "".join(ROW.format(number) for number in range(size // 60 + 1))
    return rows.encode()[:size]


def app(environ: Environ, start_response: StartResponse) -> Pieces:
    """Answer in the shape of the query."""
    query = {name: values[0] for name, values in parse_qs(environ["QUERY_STRING"]).items()}
    given = parse_qs(environ["QUERY_STRING"]).get("field", [])
    lines = [line.partition(":") for line in given]
    fields = [(name, value) for name, _, value in lines if value != "none"]
    if not any(name == "Content-Type" for name, _, _ in lines):
        fields.append(("Content-Type", "application/json"))
    body, status = text(int(query.get("size", "10000"))), query.get("status", "200 OK")
    step = len(body) // PIECES + 1
    pieces = [body[at : at + step] for at in range(0, len(body), step)]
    shape = query.get("shape", "list")
    one_by_one = {"generator": pieces, "one": [body], "gate": events(query.get("gate", ""))}
    if shape in one_by_one:
        return generated(start_response, status, fields, one_by_one[shape])
    write = start_response(status, fields)
    match shape:
        case "list":
            return [body]
        case "parts":
            return [b"", *pieces, b""]
        case "write":
            for piece in pieces:
                write(piece)
        case "file":
            return cast("Pieces", environ["wsgi.file_wrapper"](open(query["path"], "rb"), 1000))
    return []


def generated(
    start_response: StartResponse, status: str, fields: list[tuple[str, str]], pieces: Pieces
) -> Iterator[bytes]:
    """Pieces one after the other, begun with the first."""
    start_response(status, fields)
    yield from pieces


def events(gate: str) -> Iterator[bytes]:
    """Events, each when the file of its number is there."""
    for number in range(3):
        if number:
            wait_for_file(f"{gate}{number}")
        yield f"data: event {number}\n\n".encode()
