"""Answers with the status of `status=`, once the file of `until=` exists, at any path."""

from __future__ import annotations

from urllib.parse import parse_qs

from tests.apps.basics import TEXT, Environ, Pieces, StartResponse, enter


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    query = parse_qs(environ["QUERY_STRING"])
    if "until" in query:
        enter(environ, query["until"][0])
    start_response(f"{query.get('status', ['200'])[0]} As asked for", [TEXT])
    return [b"x" * 100]
