"""Answers with the status in the path; waits for a file if there is a query."""

from __future__ import annotations

from http import HTTPStatus

from tests.apps.basics import Environ, Pieces, StartResponse, enter


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Answer with as many bytes as the body of the request has."""
    status = HTTPStatus(int(environ["PATH_INFO"].rsplit("/", 1)[-1]))
    length = len(environ["wsgi.input"].read())
    if gate := environ["QUERY_STRING"]:
        enter(environ, gate)
    start_response(f"{status.value} {status.phrase}", [("Content-Length", str(length))])
    return [b"x" * length]
