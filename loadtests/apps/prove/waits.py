"""WSGI application of the study `prove` that only waits: 20 ms, for an answer of `upstream.py`."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from typing import Any

PORT = int(os.environ.get("UPSTREAM", "8020"))

_own = threading.local()


def wait() -> bytes:
    """Asks for a line, on a connection that each thread or greenlet keeps."""
    link: socket.socket | None = getattr(_own, "link", None)
    if link is None:
        link = _own.link = socket.create_connection(("127.0.0.1", PORT), timeout=10)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.sendall(b"ask\n")
    said = link.recv(100)
    if said != b"ready\n":
        raise OSError(f"the upstream said {said!r}")
    return said


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """The result that was waited for."""
    body = wait()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
