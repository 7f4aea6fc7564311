"""An application that counts the heaps of malloc, after several threads have used it at once."""

from __future__ import annotations

import ctypes
import os
import threading

from tests.apps.basics import Environ, Pieces, StartResponse

LIBC = ctypes.CDLL(None)
LIBC.fdopen.restype = ctypes.c_void_p
LIBC.malloc_info.argtypes = (ctypes.c_int, ctypes.c_void_p)
LIBC.fclose.argtypes = (ctypes.c_void_p,)

#: What the requests for `/` wait for, so that each runs in a thread of its own.
TOGETHER = threading.Barrier(6)


def heaps() -> int:
    """The number of heaps that the C library tells (malloc_info(3))."""
    told = os.memfd_create("heaps")
    copy = LIBC.fdopen(os.dup(told), b"w")
    LIBC.malloc_info(0, copy)
    LIBC.fclose(copy)
    with open(told, "rb") as file:
        file.seek(0)
        return file.read().count(b"<heap nr=")


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Answer `/` by threads that have all taken memory, and `/heaps` with the number of heaps."""
    if environ["PATH_INFO"] == "/heaps":
        body = str(heaps()).encode()
    else:
        # Too large for Python's own heap, too small for a mapping of its own.
        taken = bytearray(100_000)
        TOGETHER.wait(60)
        body = str(len(taken)).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
