"""The smallest answer: thirteen bytes of text."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

BODY = b"Hello, world!"
HEADERS = [("Content-Type", "text/plain"), ("Content-Length", str(len(BODY)))]


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Greet."""
    start_response("200 OK", HEADERS.copy())
    return [BODY]
