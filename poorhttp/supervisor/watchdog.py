"""Tells systemd that we are well, as long as that is true."""

from __future__ import annotations

import time

from poorhttp import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from poorhttp.supervisor.team import Team
    from poorhttp.systemd import Notifier


class Watchdog:
    """Asks the workers, and passes it on that they answer; idle if systemd does not want to know.

    Each service must have a worker that answers: one that hangs is a matter for `request_timeout`,
    not for killing everything. Who answers is the thread that would take the next request.
    """

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        self._within = notifier.watchdog_seconds
        self._next = time.monotonic()
        #: We were well the last time; not before somebody serves.
        self._well = False

    def due(self) -> float:
        """Return when to look again."""
        return self._next if self._within else float("inf")

    def look(self, teams: Sequence[Team], now: float) -> None:
        """Tell systemd, if it is time."""
        if now < self.due():
            return
        self._next = now + self._within / 4
        silent = [team for team in teams if not team.answers(since=now - self._within)]
        if not silent:
            self._notifier.watchdog()
        elif self._well:
            log.write(
                "error", f"{silent[0].name}no worker answers any more; systemd is told nothing"
            )
        self._well = not silent
        for team in teams:
            team.ask()
