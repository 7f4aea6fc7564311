"""An application in whose process a system call fails: FAILING names it, ERRNO is the error.

seccomp(2) makes it fail, so neither a broken disk nor a file server is needed.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from typing import cast

from tests.apps.basics import TEXT, Environ, Pieces, StartResponse
from tests.support.without_netlink import ALLOW, ERRNO, set_filter

#: Numbers of the system calls.
NUMBERS = {
    "x86_64": {"sendfile": 40, "pread64": 17},
    "aarch64": {"sendfile": 71, "pread64": 67},
}

# Tests import this file for its numbers.
if "FAILING" in os.environ:
    set_filter(
        # Load the number; if it is another one, skip the next instruction.
        (0x20, 0, 0, 0),
        (0x15, 0, 1, NUMBERS[platform.machine()][os.environ["FAILING"]]),
        (0x06, 0, 0, ERRNO | int(os.environ["ERRNO"])),
        (0x06, 0, 0, ALLOW),
    )


def large() -> Iterator[bytes]:
    """More than waits for a slow client in memory."""
    for _ in range(400):
        yield b"0123456789" * 10_000


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Send the file FILE in the way of the path."""
    path, file = environ["PATH_INFO"], os.environ["FILE"]
    if path == "/named":
        start_response("200 OK", [("X-Sendfile", file)])
        return []
    start_response("200 OK", [TEXT])
    if path == "/wrapped":
        return cast("Pieces", environ["wsgi.file_wrapper"](open(file, "rb")))
    return large() if path == "/large" else [b"other"]
