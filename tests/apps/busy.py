"""Requests that block a thread in every mode: in gevent too they wait in the kernel."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Hold requests, or note `ran METHOD PATH` in the log.

    `/hold?FILE` answers when the file exists, `/left` when its client has left.
    """
    path, file = environ["PATH_INFO"], environ["QUERY_STRING"]
    length = len(environ["wsgi.input"].read())
    if path == "/hold":
        environ["wsgi.errors"].write(f"holds {file}\n")
        while not os.path.exists(file):
            # gevent replaces `sleep`.
            signal.sigtimedwait((), 0.002)
    elif path == "/left":
        environ["wsgi.errors"].write("waits\n")
        while not environ["poorhttp.client_disconnected"]():
            signal.sigtimedwait((), 0.002)
        environ["wsgi.errors"].write("left\n")
    else:
        environ["wsgi.errors"].write(f"ran {environ['REQUEST_METHOD']} {path}\n")
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{path} {length}\n".encode()]
