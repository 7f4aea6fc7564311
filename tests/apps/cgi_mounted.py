"""CGI programs behind a middleware below a prefix, beside the targets of local redirects."""

from __future__ import annotations

import os
from collections.abc import Iterable

from poorhttp.targets import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

PREFIX = "/cgi-bin"

programs = load(f"cgi:{os.environ['CGI_FOLDER']}")


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer as a server does that has other things beside its programs."""
    environ["poorhttp.local_redirect"] = application
    path = environ["PATH_INFO"]
    if not path.startswith(f"{PREFIX}/"):
        body = f"{environ['REQUEST_METHOD']} {path} {environ['QUERY_STRING']}\n".encode()
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [body]
    environ["SCRIPT_NAME"], environ["PATH_INFO"] = PREFIX, path[len(PREFIX) :]
    # What a proxy in front of us has seen to.
    environ["wsgi.url_scheme"] = "https"
    environ["REMOTE_USER"] = "\u20ac" if environ["QUERY_STRING"] == "euro" else "J\xf6rg"

    def begin(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        return start_response(status, [*headers, ("X-Behind", "it")], exc_info)

    return programs(environ, begin)
