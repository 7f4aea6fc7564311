"""Reading configuration files, without ever waiting for somebody who writes them."""

from __future__ import annotations

import errno
import os
import stat


def read_file(path: str) -> bytes:
    """Return what a regular file holds.

    The main process reads it again at each reload: opening a named pipe would hold it up until
    somebody writes there, and what was read from a pipe is gone the next time.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    # Opened so, a named pipe does not wait.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file, which a reload can read again")
        return file.read()
