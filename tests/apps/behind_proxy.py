"""apps/lightheavy, and paths that show how a proxy forwards requests.

/echo...        what the server has heard, as JSON
/wait?FILE      waits until there is such a file
/pieces?FILE    a piece, and another when there is such a file
/large?N        so many octets
/sendfile?PATH  the file, in X-Sendfile
/accel?PATH     the file, in X-Accel-Redirect
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator

from poorhttp.targets import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

light_and_heavy = load("dispatch:apps/lightheavy")
echo = load("tests/apps/echo.py")
gate = load("tests/apps/gate.py")


def pieces(path: str) -> Iterator[bytes]:
    """The pieces of an answer."""
    yield b"first\n"
    while not os.path.exists(path):
        time.sleep(0.002)
    yield b"second\n"


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with one of them."""
    path, query = environ["PATH_INFO"], environ["QUERY_STRING"]
    plain = ("Content-Type", "text/plain")
    match path:
        case "/wait":
            return gate(environ, start_response)
        case "/pieces":
            start_response("200 OK", [plain, ("X-Accel-Buffering", "no")])
            return pieces(query)
        case "/large":
            start_response("200 OK", [plain, ("Content-Length", query)])
            return [bytes(range(251)) * (int(query) // 251), b"x" * (int(query) % 251)]
        case "/sendfile":
            start_response("200 OK", [plain, ("X-Sendfile", query)])
            return []
        case "/accel":
            start_response("200 OK", [plain, ("X-Accel-Redirect", query)])
            return []
    chosen = echo if path.startswith("/echo") else light_and_heavy
    return chosen(environ, start_response)
