"""Uploads and downloads of documents larger than memory, checked to the last byte."""

from __future__ import annotations

import contextlib
import http.client
from typing import Any

from loadtests.apps.pattern import PIECE, checksum, pieces, summary
from loadtests.errors import ServerFailure

PATIENCE = 300.0
"""Seconds for which a transfer may stand still: in a mode that runs one request at a time, the
others wait for the first."""


def upload(port: int, octets: int) -> None:
    """Posts a document. Raises ServerFailure unless the application has received just that."""
    length = {"Content-Length": str(octets)}
    _transfer("an upload", port, octets, "POST", "/", pieces(octets), length)


def download(port: int, octets: int) -> None:
    """Gets a document. Raises ServerFailure unless it is complete and right."""
    _transfer("a download", port, octets, "GET", f"/{octets}")


def _transfer(what: str, port: int, octets: int, method: str, *request: Any) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        with contextlib.closing(connection):
            connection.request(method, *request)
            answer = connection.getresponse()
            arrived = summary(answer.read) if method == "GET" else answer.read(PIECE)
    except (OSError, http.client.HTTPException) as error:
        raise ServerFailure(f"{what} failed: {type(error).__name__}: {error}") from None
    said, right = arrived.decode("latin-1"), f"{octets} {checksum(octets)}"
    if answer.status != 200 or said != right:
        raise ServerFailure(
            f"{what} was answered {answer.status} and arrived as {said[:60]!r}, right is {right!r}"
        )
