"""Discards standard output and standard error while modules are imported."""

from __future__ import annotations

import os
import posix
import sys


class DiscardOutput:
    """Context manager that points descriptors 1 and 2 to `/dev/null`.

    Output of C libraries is discarded too, and a module that keeps a reference to `sys.stderr` has
    the right object afterwards.
    """

    def __enter__(self) -> None:
        _flush()
        self._kept = [(number, os.dup(number)) for number in (1, 2)]
        nothing = os.open(os.devnull, os.O_WRONLY)
        for number, _ in self._kept:
            os.dup2(nothing, number)
        posix.close(nothing)

    def __exit__(self, *_: object) -> None:
        _flush()
        for number, kept in self._kept:
            os.dup2(kept, number)
            posix.close(kept)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        # None in a process that was started without descriptors 1 and 2.
        if stream is not None:
            stream.flush()
