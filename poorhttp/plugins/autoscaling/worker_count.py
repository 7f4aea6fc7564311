"""Decides how many workers a service has, with `workers = auto`: a function of figures and time.

- **More** if requests wait for a worker, and the processors are not full: in modes that run one
  request at a time, if all workers have one; in other modes, if the interpreters of the workers are
  busy and there are more requests than interpreters. What computes takes no more processors than
  there are, so a full machine gets no further worker for that: growing is no answer to overload.
  But workers that run one request at a time and wait for something else for more than half of the
  time get others also on a machine that other programs keep busier than they do.
- **Fewer** if fewer were needed for two halves of a window.
- **As many as before** while workers begin, and while there is no memory for another one.

Nothing here reads a clock or a file.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    class Look(TypedDict):
        """What is seen of a service in one look, half a second after the one before."""

        #: Seconds of any clock.
        now: float
        #: Workers that serve.
        workers: int
        #: Requests that their applications have at this moment.
        in_flight: int
        #: Processors that the workers have used since the last look.
        used: float
        #: Processors for which the workers have waited meanwhile, in modes that run one request at
        #: a time.
        delayed: float
        #: Processors that nobody has used meanwhile, of those that may be used.
        idle: float
        #: Part of looks at the interpreters that have found one held; 0 if nobody has looked.
        held: float
        #: For how many more workers there is memory; negative: there are too many.
        room: int


#: Looks one after another that must want more workers.
STANDING = 2

#: Part of the time for which an interpreter is busy that has no room for more.
BUSY = 0.85

#: Processors that must be idle for another worker to have something to compute on.
IDLE = 0.25

#: Part of the time from which on workers wait for something else than a processor.
WAITS = 0.5

#: Part of a processor that each worker is to use, of what all of them have used.
FILLED = 0.7

#: Half of the seconds for which fewer workers must have been needed.
HALF = 10.0

#: One of so many workers may be idle, besides one: the load of a moment is not that of the next.
SPARE_SHARE = 8

#: Seconds in which a worker that is missed after others have ended shows that they should not have,
#: and for which none ends then.
REGRET, KEPT = 30.0, 600.0


class WorkerCount:
    """What is remembered from one look to the next."""

    def __init__(self, least: int, most: int, cpus: int, *, one_at_a_time: bool) -> None:
        """Decide between `least` and `most` workers, which may use so many processors.

        `one_at_a_time`: each worker runs one request at a time.
        """
        self._cpus = cpus
        self.least = least
        self.most = max(least, most)
        self._one_at_a_time = one_at_a_time
        self._wanting = 0  # looks since the last one that wanted no more
        self._step = 1  # how many are added next
        self._needed = [0, self.most]  # workers, in this half of the window and in the one before
        self._half_ends = 0.0
        self._ended = -REGRET  # when some last ended
        self._kept_until = 0.0

    def wants_more(self, look: Look) -> bool:
        """Return whether a look alone is a reason for more workers, if there is memory."""
        workers, has_processor = look["workers"], self._idle(look) >= IDLE
        waits = look["in_flight"] >= workers
        if self._one_at_a_time:
            waiting = workers - look["used"] - look["delayed"]
            others = self._cpus - look["used"] - look["idle"]
            has_processor |= waiting > workers * WAITS and others > look["used"]
        else:
            busy = max(look["used"] / workers, look["held"])
            waits = look["in_flight"] > workers and busy >= BUSY
        return waits and has_processor and workers < self.most

    def decide(self, look: Look) -> int:
        """Return how many workers are to be added; negative: to end."""
        now, workers = look["now"], look["workers"]
        needed = self._needed_of_late(look)
        if look["room"] < 0 and workers > self.least:
            self._wanting, self._step = 0, 1
            return -1
        self._wanting = self._wanting + 1 if self.wants_more(look) else 0
        if self._wanting >= STANDING and look["room"] > 0:
            if now < self._ended + REGRET:
                self._kept_until = now + KEPT
            # Interpreters that compute have no use for more than there are idle processors.
            useful = workers // 2 if self._one_at_a_time else int(self._idle(look))
            more = min(self._step, max(1, useful), look["room"], self.most - workers)
            self._step *= 2
            return more
        if not self._wanting:
            self._step = 1
        if workers <= needed + 1 + workers // SPARE_SHARE or now < self._kept_until:
            return 0
        fewer = min(workers - needed - 1, workers - self.least)
        if fewer <= 0:
            return 0
        self._ended = now
        return -fewer

    def _idle(self, look: Look) -> float:
        """Return how many idle processors the workers may use: a quota may allow them fewer."""
        return min(look["idle"], self._cpus - look["used"])

    def _needed_of_late(self, look: Look) -> int:
        """Return how many workers were needed at most in the window, if one of its halves ends."""
        needed = math.ceil(look["used"] / FILLED)
        if self._one_at_a_time:
            needed = max(needed, look["in_flight"])
        self._needed[0] = max(self._needed[0], needed)
        if look["now"] < self._half_ends:
            return self.most
        found = max(self._needed)
        self._needed = [needed, self._needed[0]]
        self._half_ends = look["now"] + HALF
        return found
