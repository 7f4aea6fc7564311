"""Exponential pauses between restarts of workers that exit early, and limits for their log lines.

A service survives a database that is down for a week: it tries again every half minute, without
filling the disk with log lines.
"""

from __future__ import annotations

import time

#: Seconds before a worker that exited early is replaced; each further one doubles them.
PAUSE = 1.0
LONGEST_PAUSE = 30.0

#: Doublings after which the pause is `LONGEST_PAUSE` in any case.
MOST_DOUBLINGS = 10

#: Early exits in a row that are all logged, and seconds between two lines about later ones.
LOGGED = 20
LOGGED_EVERY = 3600.0


class Backoff:
    """The pause of one service."""

    count = 0  # early exits in a row
    until = 0.0  # monotonic time before which no worker is started
    _logged = 0.0

    @property
    def pause(self) -> float:
        """Seconds until the next start."""
        return max(0.0, self.until - time.monotonic())

    @property
    def logs(self) -> bool:
        """Whether the next early exit is to be logged."""
        return self.count < LOGGED or time.monotonic() - self._logged >= LOGGED_EVERY

    def fail(self) -> bool:
        """Count an early exit; return whether it is to be logged."""
        logs = self.logs
        now = time.monotonic()
        pause = min(PAUSE * 2.0 ** min(self.count, MOST_DOUBLINGS), LONGEST_PAUSE)
        self.count += 1
        self.until = now + pause
        if logs:
            self._logged = now
        return logs

    def succeed(self) -> None:
        """Reset the count: a worker has run long enough."""
        self.count = 0

    def text(self) -> str:
        """Return when the next start is, for the end of a log message."""
        if self.count < 2:
            return ""
        often = f"{self.count} in a row have died early"
        if self.count >= LOGGED:
            often += f"; from now on this is said every {LOGGED_EVERY / 60:.0f} minutes"
        return f" in {self.pause:.0f} s ({often})"
