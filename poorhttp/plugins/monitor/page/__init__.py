"""The status page at the address `admin`, and the events that keep it up to date.

Rendered by the admin process from the status document. With JavaScript the browser replaces the
content by what events bring; without, it loads the page again now and then.

layout.py     the whole page: what concerns the server, and the sections of each service
sections.py   sections about one service
charts.py     SVG of the last hour and of single requests
html.py       templates and escaping
stream.py     server-sent events for all open pages

The files `page.css`, `page.js` and `icon.svg` are sent as they are.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable

from poorhttp.plugins.monitor.page import layout
from poorhttp.plugins.monitor.page.stream import NO_ANSWER, SECURITY, Events
from poorhttp.process.own_files import own_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from poorhttp.plugins.monitor.admin.model import Status

#: Files beside this one, with their content types.
FILES = {
    "/-/page.css": "text/css; charset=utf-8",
    "/-/page.js": "text/javascript; charset=utf-8",
    "/-/icon.svg": "image/svg+xml",
}

#: Nothing comes from elsewhere, and nothing stands in the page that could run.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

#: The open pages of this process.
_events = Events()

#: Content of `FILES` that has been read.
_read: dict[str, bytes] = {}


def page(
    status: Callable[[], Status], environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    """Answer with the page."""
    try:
        document = status()
    except OSError:
        code, text = "503 Service Unavailable", layout.unavailable(NO_ANSWER)
    else:
        _events.recent.add(document)
        code, text = "200 OK", layout.document(document, _events.recent, _version())
    headers = [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Cache-Control", "no-store"),
        ("Content-Security-Policy", POLICY),
        *SECURITY,
    ]
    start_response(code, headers)
    return [text.encode()]


def events(
    status: Callable[[], Status], environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    """Answer with the content of the page in events, until the client leaves."""
    return _events.open(status, environ, start_response)


def file(
    status: Callable[[], Status], environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    """Answer with a file; its address changes with its content, so a browser may keep it."""
    path = environ["PATH_INFO"]
    content = _content(path)
    headers = [
        ("Content-Type", FILES[path]),
        ("Cache-Control", "private, max-age=86400" if environ["QUERY_STRING"] else "no-cache"),
        ("Content-Length", str(len(content))),
        *SECURITY,
    ]
    start_response("200 OK", headers)
    return [content]


def _content(path: str) -> bytes:
    if path not in _read:
        name = path.rpartition("/")[2]
        _read[path] = own_files.get_data(os.path.join(os.path.dirname(__file__), name))
    return _read[path]


def _version() -> str:
    """Return what changes with script and style."""
    return f"{zlib.crc32(_content('/-/page.css') + _content('/-/page.js')):08x}"
