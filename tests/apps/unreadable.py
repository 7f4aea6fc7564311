"""An application in whose process a system call fails: FAILING names it, ERRNO is the error.

seccomp(2) makes it fail, so neither a broken disk nor a file server is needed.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterator
from typing import cast

from tests.apps.wsgi import TEXT, Environ, Pieces, StartResponse

#: Numbers of the system calls, and that of seccomp(2).
NUMBERS = {
    "x86_64": {"sendfile": 40, "pread64": 17, "seccomp": 317},
    "aarch64": {"sendfile": 71, "pread64": 67, "seccomp": 277},
}


def let_fail(name: str, error: int) -> None:
    """Let a system call of this process fail from now on, in all of its threads."""
    numbers = NUMBERS[platform.machine()]
    instructions = (
        # Load the number; if it is another one, skip the next instruction.
        *((0x20, 0, 0, 0), (0x15, 0, 1, numbers[name])),
        *((0x06, 0, 0, 0x00050000 | error), (0x06, 0, 0, 0x7FFF0000)),
    )
    code = ctypes.create_string_buffer(
        b"".join(struct.pack("HBBI", *each) for each in instructions)
    )
    program = struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_filter, all_threads = 38, 1, 1
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.syscall(
        numbers["seccomp"], set_filter, all_threads, program
    ):
        raise OSError(ctypes.get_errno(), "seccomp")


# Tests import this file for its numbers.
if "FAILING" in os.environ:
    let_fail(os.environ["FAILING"], int(os.environ["ERRNO"]))


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
