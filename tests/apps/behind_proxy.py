"""apps/lightheavy, and paths that show how a proxy forwards requests.

/echo...        what the server has heard, as JSON
/wait?FILE      waits until there is such a file
/pieces?FILE    a piece, and another when there is such a file
/large?N        so many octets
/sendfile?PATH  the file, in X-Sendfile
/accel?PATH     the file, in X-Accel-Redirect
"""

from __future__ import annotations

from poorhttp.targets import load
from tests.apps.basics import TEXT, Environ, Pieces, StartResponse, two_pieces

light_and_heavy = load("dispatch:apps/lightheavy")
echo = load("tests/apps/echo.py")
gate = load("tests/apps/gate.py")


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    path, query = environ["PATH_INFO"], environ["QUERY_STRING"]
    match path:
        case "/wait":
            return gate(environ, start_response)
        case "/pieces":
            return two_pieces(start_response, query)
        case "/large":
            start_response("200 OK", [TEXT, ("Content-Length", query)])
            return [bytes(range(251)) * (int(query) // 251), b"x" * (int(query) % 251)]
        case "/sendfile" | "/accel":
            name = "X-Sendfile" if path == "/sendfile" else "X-Accel-Redirect"
            start_response("200 OK", [TEXT, (name, query)])
            return []
    chosen = echo if path.startswith("/echo") else light_and_heavy
    return chosen(environ, start_response)
