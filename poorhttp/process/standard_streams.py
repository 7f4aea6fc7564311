"""Opens descriptors 0 to 2, if the server was started without them.

Otherwise the next file or connection that is opened gets such a number, and what a library writes
to standard output lands in a log or in a response.
"""

from __future__ import annotations

import os
import sys


def open_standard_streams() -> None:
    """Open those of the descriptors 0 to 2 that are closed on `/dev/null`, for all processes.

    To be called before anything else opens a descriptor.
    """
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(fd)
        except OSError:
            _open(fd)
        # Python has none of a descriptor that was closed when it was started.
        if getattr(sys, name) is None:
            mode = "r" if fd == 0 else "w"
            stream = open(fd, mode, closefd=False, errors="backslashreplace")  # noqa: SIM115
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def _open(fd: int) -> None:
    """Open a descriptor, the lowest one that is closed, on `/dev/null`."""
    try:
        opened = os.open(os.devnull, os.O_RDWR)
    except OSError:
        # No such file, in a chroot: a pipe without a writer is at its end, and takes nothing.
        opened, write = os.pipe()
        os.close(write)
    if opened == fd:
        os.set_inheritable(fd, True)
    else:
        os.dup2(opened, fd)
        os.close(opened)
