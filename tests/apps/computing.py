"""Requests that compute or hold the interpreter, and answer with Python's switch interval."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

LONG = 0.05
"""Seconds of processor time."""


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """`/compute` computes for long, and `/set?SECONDS` sets the interval.

    `/hold?READY&GATE` writes to one named pipe, and holds the interpreter until the other one has
    a byte.
    """
    if environ["PATH_INFO"] == "/set":
        sys.setswitchinterval(float(environ["QUERY_STRING"]))
    interval = f"{sys.getswitchinterval():g}"
    if environ["PATH_INFO"] == "/compute":
        end = time.thread_time() + LONG
        while time.thread_time() < end:
            pass
    if environ["PATH_INFO"] == "/hold":
        ready, gate = (os.open(name, os.O_RDWR) for name in environ["QUERY_STRING"].split("&"))
        # Unlike calls of `os`, these do not release the interpreter.
        libc = ctypes.PyDLL(None)
        libc.write(ready, b"+", 1)
        libc.read(gate, ctypes.create_string_buffer(1), 1)
        os.close(ready)
        os.close(gate)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [interval.encode()]
