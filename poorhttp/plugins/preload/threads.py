"""Checks for threads of the application in a worker before other workers are forked from it.

Threads do not survive a fork.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from poorhttp import logs
from poorhttp.plugins.preload.options import Preloading
from poorhttp.process.control_channel import REFORK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from poorhttp.config.settings import Settings

#: How often the threads are looked at before a worker is not reforked, and for how many seconds.
#: A thread that is being started has the name of its process, also one of the server.
CHECKS = 3
DURATION = 1.0


class ThreadCheck:
    """Looks at the threads of a worker when it has begun `refork_after` requests."""

    def __init__(self, settings: Settings, after: int, channel: int) -> None:
        """Take the number of requests, and the descriptor of the control channel."""
        self._settings = settings
        self._after = after
        self._channel = channel
        self._count = 0
        self._began = 0.0
        self._threads: Mapping[int, str] = {}

    def run(self) -> int:
        """Report that workers may be forked from this one, unless the application has threads.

        Threads that come and go do not count, nor do any if a function of `before_refork` may end
        them. Returns after how many requests to look again; 0: not any more.
        """
        found = {tid: name for tid, name in other_threads().items() if not is_own(name)}
        if self._count:
            found = {tid: name for tid, name in found.items() if tid in self._threads}
        else:
            self._began = time.monotonic()
        self._threads = found
        self._count += 1
        if self._settings.of(Preloading).before_refork or not found:
            with suppress(OSError):
                os.write(self._channel, REFORK)
        elif self._count < CHECKS or time.monotonic() - self._began < DURATION:
            return self._after // 10 + 1
        else:
            log_not_reforked(found.values())
        return 0


def other_threads() -> dict[int, str]:
    """Return the names of all threads but the main one, by their IDs.

    Threads that Python has not started have the name that the operating system knows.

    Raises:
        OSError: `/proc` cannot be read.
    """
    module: Any = sys.modules.get("threading")
    known = {each.native_id: each.name for each in module.enumerate()} if module else {}
    names = {}
    for tid in map(int, os.listdir("/proc/self/task")):
        if tid != os.getpid():
            # It may have ended meanwhile.
            with (
                suppress(FileNotFoundError, ProcessLookupError),
                open(f"/proc/self/task/{tid}/comm", "rb") as file,
            ):
                names[tid] = known.get(tid) or os.fsdecode(file.read().strip())
    return names


def is_own(thread: str) -> bool:
    """Whether a thread of this name belongs to the server."""
    return thread.startswith("poorhttp-")


def log_not_reforked(threads: Iterable[str]) -> None:
    """Log which threads keep workers from being forked from this process."""
    names = ", ".join(sorted(threads))
    logs.write("warning", f"not reforked, because a thread does not survive that: {names}")
