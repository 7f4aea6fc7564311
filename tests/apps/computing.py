"""Requests that compute or hold the interpreter, and answer with Python's switch interval."""

from __future__ import annotations

import ctypes
import os
import sys
import time

from tests.apps.basics import Environ, Pieces, StartResponse, say

LONG = 0.05
"""Seconds of processor time."""


def app(environ: Environ, start_response: StartResponse) -> Pieces:
    """`/compute` computes for long, and `/set?SECONDS` sets the interval.

    `/hold?READY&GATE` writes to one named pipe, and holds the interpreter until the other one has
    a byte.
    """
    path, query = environ["PATH_INFO"], environ["QUERY_STRING"]
    if path == "/set":
        sys.setswitchinterval(float(query))
    interval = f"{sys.getswitchinterval():g}"
    if path == "/compute":
        end = time.thread_time() + LONG
        while time.thread_time() < end:
            pass
    if path == "/hold":
        ready, gate = (os.open(name, os.O_RDWR) for name in query.split("&"))
        # Unlike calls of `os`, these do not release the interpreter.
        libc = ctypes.PyDLL(None)
        libc.write(ready, b"+", 1)
        libc.read(gate, ctypes.create_string_buffer(1), 1)
        os.close(ready)
        os.close(gate)
    return say(start_response, interval)
