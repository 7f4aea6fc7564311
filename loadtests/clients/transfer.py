"""Uploads and downloads of documents larger than memory, checked to the last byte."""

from __future__ import annotations

import contextlib
import http.client
import zlib
from collections.abc import Iterator

from loadtests.apps.pattern import PIECE, checksum, pieces
from loadtests.errors import ServerFailure

PATIENCE = 300.0
"""Seconds for which a transfer may stand still: in a mode that runs one request at a time, the
others wait for the first."""


def upload(port: int, octets: int) -> None:
    """Posts a document. Raises ServerFailure unless the application has received just that."""
    with _connection(port, "an upload") as connection:
        connection.request("POST", "/", pieces(octets), {"Content-Length": str(octets)})
        answer = connection.getresponse()
        said = answer.read(PIECE).decode("latin-1")
        _check("an upload", answer.status, said, octets)


def download(port: int, octets: int) -> None:
    """Gets a document. Raises ServerFailure unless it is complete and right."""
    with _connection(port, "a download") as connection:
        connection.request("GET", f"/{octets}")
        answer = connection.getresponse()
        received = found = 0
        while piece := answer.read(PIECE):
            received += len(piece)
            found = zlib.crc32(piece, found)
        _check("a download", answer.status, f"{received} {found}", octets)


@contextlib.contextmanager
def _connection(port: int, what: str) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        yield connection
    except (OSError, http.client.HTTPException) as error:
        raise ServerFailure(f"{what} failed: {type(error).__name__}: {error}") from None
    finally:
        connection.close()


def _check(what: str, status: int, arrived: str, octets: int) -> None:
    right = f"{octets} {checksum(octets)}"
    if status != 200 or arrived != right:
        raise ServerFailure(
            f"{what} was answered {status} and arrived as {arrived[:60]!r}, right is {right!r}"
        )
