"""A page of 10 KB, made once: to a server, what a cached article looks like."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

SIZE = 10 * 1024

_TOP = b"<!DOCTYPE html>\n<html lang=en>\n<title>A page</title>\n<h1>A page of 10 KB</h1>\n"
_LINE = b"<p>The quick brown fox jumps over the lazy dog, and the dog does not mind at all.</p>\n"
_END = b"</html>\n"

PAGE = (_TOP + _LINE * (SIZE // len(_LINE)))[: SIZE - len(_END)] + _END
HEADERS = [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(PAGE)))]


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Show the page."""
    start_response("200 OK", HEADERS.copy())
    return [PAGE]
