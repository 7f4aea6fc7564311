"""Files for those who have a link with a token: the application checks, the server sends.

It looks who may have a file, and says only its name: in `X-Sendfile` (options in downloads.ini), in
`X-Accel-Redirect`, or as `wsgi.file_wrapper`, which is in PEP 3333. The process is free
for the next request while the server sends, and with the first two, ranges and conditional requests
work by themselves.

A link is good for an hour. Who makes links and who serves them share the key, DOWNLOADS_KEY.
"""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlencode
from wsgiref.util import FileWrapper

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

FILES = Path(__file__).resolve().parent / "files"
KEY = os.environ.get("DOWNLOADS_KEY", "a key for trying this out").encode()

#: Seconds that a link is good for.
LIFETIME = 3600

#: The ways to hand out a file, each below a path of its own.
WAYS = ("sendfile", "accel", "wrapper")


def token(name: str, until: int) -> str:
    """Return what proves that we have made a link to a file, good until a time (since 1970)."""
    return hmac.new(KEY, f"{name}\n{until}".encode(), "sha256").hexdigest()


def link(way: str, name: str, script_name: str = "") -> str:
    """Return a link to a file."""
    until = int(time.time()) + LIFETIME
    query = urlencode({"until": until, "token": token(name, until)})
    return f"{script_name}/{way}/{quote(name)}?{query}"


def is_good(name: str, query: str) -> bool:
    """Tell whether the query of a link to a file is one that we have made, not long ago."""
    fields = parse_qs(query)
    until = fields.get("until", [""])[0]
    given = fields.get("token", [""])[0]
    if not (until.isascii() and until.isdigit() and len(until) < 20):
        return False
    right = token(name, int(until))
    return hmac.compare_digest(right.encode(), given.encode()) and time.time() < int(until)


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """List the files, or hand out one."""
    path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
    if path in ("", "/"):
        return overview(environ, start_response)
    _, way, *rest = path.split("/", 2)
    name = "".join(rest)
    if way not in WAYS or name not in os.listdir(FILES):
        return refuse(start_response, "404 Not Found")
    if not is_good(name, environ.get("QUERY_STRING", "")):
        return refuse(start_response, "403 Forbidden")
    headers = [
        ("Content-Type", "application/octet-stream"),
        ("Content-Disposition", f"attachment; filename*=UTF-8''{quote(name)}"),
        ("Cache-Control", "private"),
    ]
    if way == "sendfile":
        start_response("200 OK", [*headers, ("X-Sendfile", str(FILES / name))])
        return []
    if way == "accel":
        start_response("200 OK", [*headers, ("X-Accel-Redirect", f"/protected/{quote(name)}")])
        return []
    file = (FILES / name).open("rb")
    size = os.fstat(file.fileno()).st_size
    start_response("200 OK", [*headers, ("Content-Length", str(size))])
    body: Iterable[bytes] = environ.get("wsgi.file_wrapper", FileWrapper)(file)
    return body


def overview(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with a page of links."""
    script_name = environ.get("SCRIPT_NAME", "")
    items = [
        f"<li>{escape(name)}: "
        + ", ".join(f'<a href="{escape(link(way, name, script_name))}">{way}</a>' for way in WAYS)
        for name in sorted(os.listdir(FILES))
    ]
    page = "<!DOCTYPE html>\n<html lang=en>\n<title>Downloads</title>\n<ul>\n" + "\n".join(items)
    start_response("200 OK", [("Content-Type", "text/html; charset=utf-8")])
    return [f"{page}\n</ul>\n</html>\n".encode()]


def refuse(start_response: StartResponse, status: str) -> Iterable[bytes]:
    """Answer without a file."""
    start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{status}\n".encode()]
