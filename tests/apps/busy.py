"""Requests that block a thread in every mode: in gevent too they wait in the kernel."""

from __future__ import annotations

import os
import signal

from tests.apps.basics import Environ, Pieces, StartResponse, say


def app(environ: Environ, start_response: StartResponse) -> Pieces:
    """Hold requests, or note `ran METHOD PATH` in the log.

    `/hold?FILE` answers when the file exists, `/left` when its client has left.
    """
    path, file, log = environ["PATH_INFO"], environ["QUERY_STRING"], environ["wsgi.errors"]
    length = len(environ["wsgi.input"].read())
    if path == "/hold":
        log.write(f"holds {file}\n")
        while not os.path.exists(file):
            # gevent replaces `sleep`.
            signal.sigtimedwait((), 0.002)
    elif path == "/left":
        log.write("waits\n")
        while not environ["poorhttp.client_disconnected"]():
            signal.sigtimedwait((), 0.002)
        log.write("left\n")
    else:
        log.write(f"ran {environ['REQUEST_METHOD']} {path}\n")
    return say(start_response, f"{path} {length}\n")
