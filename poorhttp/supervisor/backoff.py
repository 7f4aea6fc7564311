"""Pauses between restarts of workers that die early, and which of these deaths are logged.

A service must survive a database that is broken for a week: it tries again every half minute,
without filling the disk with what it says about that.
"""

from __future__ import annotations

import time

#: Seconds before a worker that died early is replaced: crashes must not eat the machine. Each that
#: follows doubles it, up to the longest.
PAUSE = 1.0
LONGEST_PAUSE = 30.0

#: Doublings after which the pause is the longest in any case.
MOST_DOUBLINGS = 10

#: Early deaths in a row that are logged, and seconds between two lines about those that follow.
LOGGED = 20
LOGGED_EVERY = 3600.0


class Backoff:
    """The pause of one service.

    Attributes:
        count: early deaths in a row.
        until: no worker is started before, on the monotonic clock.
    """

    __slots__ = ("_logged", "count", "until")

    def __init__(self) -> None:
        self.count = 0
        self.until = 0.0
        self._logged = 0.0

    @property
    def pause(self) -> float:
        """Seconds until the next start."""
        return max(0.0, self.until - time.monotonic())

    @property
    def logs(self) -> bool:
        """Whether the next early death is to be logged."""
        return self.count < LOGGED or time.monotonic() - self._logged >= LOGGED_EVERY

    def fail(self) -> bool:
        """Note an early death; return whether it is to be logged."""
        logs = self.logs
        now = time.monotonic()
        pause = min(PAUSE * 2.0 ** min(self.count, MOST_DOUBLINGS), LONGEST_PAUSE)
        self.count += 1
        self.until = now + pause
        if logs:
            self._logged = now
        return logs

    def succeed(self) -> None:
        """Note that workers last again."""
        self.count = 0

    def text(self) -> str:
        """Say when the next start is, to be put behind what has failed."""
        if self.count < 2:
            return ""
        often = f"{self.count} in a row have died young"
        if self.count >= LOGGED:
            often += f"; from now on this is said every {LOGGED_EVERY / 60:.0f} minutes"
        return f" in {self.pause:.0f} s ({often})"
