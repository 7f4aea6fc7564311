"""A process and its descendants."""

from __future__ import annotations

import contextlib
import os
import signal

from loadtests.measure.resources import living


class Family:
    """Of a process that was started in a session of its own.

    A session keeps together whose parent has gone. A process that has begun one itself belongs to
    the family as long as its parent is there, and by its session from when it was seen there.
    """

    def __init__(self, session: int) -> None:
        self._sessions = {session}

    def processes(self) -> list[int]:
        """Those that have not ended."""
        found = set()
        children: dict[int, list[tuple[int, int]]] = {}
        for one in living():
            children.setdefault(one.parent, []).append((one.process, one.session))
            if one.session in self._sessions:
                found.add(one.process)
        below = list(found)
        while below:
            for process, session in children.get(below.pop(), ()):
                if process not in found:
                    self._sessions.add(session)
                    found.add(process)
                    below.append(process)
        return sorted(found)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to all."""
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
