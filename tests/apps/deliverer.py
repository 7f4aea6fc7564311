"""An application that answers by X-Sendfile, with the file named in its query.

The query is `name=value&…` with percent-encoding: `status`, `body`, `kind` (how the body is given)
and any number of `header` in the form `Name: value`.
"""

from __future__ import annotations

from urllib.parse import parse_qs

from tests.apps.basics import Environ, Pieces, StartResponse


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    query = parse_qs(environ["QUERY_STRING"], encoding="latin-1")
    lines = [line.partition(": ") for line in query.get("header", [])]
    headers = [(name, value) for name, _, value in lines]
    body = query.get("body", [""])[0].encode()
    write = start_response(query.get("status", ["200 OK"])[0], headers)
    match query.get("kind", ["list"])[0]:
        case "pieces":
            return (bytes([octet]) for octet in body)
        case "written":
            write(body)
            return []
        case "endless":
            return iter(lambda: b"x" * 1000, b"")
    return [body]
