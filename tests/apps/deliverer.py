"""An application that answers by X-Sendfile, with the file named in its query.

The query is `name=value&…` with percent-encoding: `status`, `body`, `kind` (how the body is given)
and any number of `header` in the form `Name: value`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import parse_qs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def pieces(text: bytes) -> Iterator[bytes]:
    """Return an iterator over single octets."""
    for octet in text:
        yield bytes([octet])


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer as the query says."""
    query = parse_qs(environ["QUERY_STRING"], encoding="latin-1")
    headers = []
    for line in query.get("header", []):
        name, _, value = line.partition(": ")
        headers.append((name, value))
    body = query.get("body", [""])[0].encode()
    write = start_response(query.get("status", ["200 OK"])[0], headers)
    match query.get("kind", ["list"])[0]:
        case "pieces":
            return pieces(body)
        case "written":
            write(body)
            return []
        case "endless":
            return iter(lambda: b"x" * 1000, b"")
        case "fails":
            raise ValueError("as it was told")
    return [body]
