"""An application that changes its environ, and reports whether it was unchanged before."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    clean = "scribbled" not in environ and environ["SCRIPT_NAME"] == ""
    environ["scribbled"] = True
    environ["SCRIPT_NAME"] = "/changed"
    environ.pop("HTTP_HOST", None)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"clean" if clean else b"dirty"]
