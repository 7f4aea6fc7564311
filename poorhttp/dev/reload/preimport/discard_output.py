"""Having nobody hear what is printed."""

from __future__ import annotations

import os
import posix
import sys
from types import TracebackType


class DiscardOutput:
    """Standard output and standard error lead nowhere for as long as it is entered.

    The descriptors do, since some of what is printed does not come from Python. Who remembers
    `sys.stderr` meanwhile has the right one afterwards.
    """

    def __enter__(self) -> None:
        _flush()
        self._kept = [(number, os.dup(number)) for number in (1, 2)]
        nothing = os.open(os.devnull, os.O_WRONLY)
        for number, _ in self._kept:
            os.dup2(nothing, number)
        posix.close(nothing)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _flush()
        for number, kept in self._kept:
            os.dup2(kept, number)
            posix.close(kept)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        # There is none in a process that was started without.
        if stream is not None:
            stream.flush()
