"""The last hour of each service in slots of a minute, kept in the main process.

The figures are read once a minute while requests come. After a minute without any, each worker is
asked to report its next request (`WorkerStatus.await_request`), so that an idle server sleeps.

A new main process (USR2) goes on with the slots of the one before, and with its slot under way.
"""

from __future__ import annotations

import time
from collections import deque

from poorhttp.plugins.monitor.admin.figures import figures
from poorhttp.plugins.monitor.admin.model import BOUNDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from poorhttp.plugins.monitor.admin.model import Figures, Slot
    from poorhttp.supervisor.generations import Generations
    from poorhttp.supervisor.worker_handle import WorkerHandle

    class Inherited(TypedDict):
        """A history as JSON: begin of the slot under way; samples before it, and slots."""

        begin: float
        before: dict[str, list[int]]
        slots: dict[str, list[tuple[float, float, list[int], int]]]


#: Seconds of a slot, and of all.
MINUTE, HOUR = 60.0, 3600.0

#: Slots that are kept, at most.
MOST_SLOTS = 60

#: Requests, responses with 5xx, bytes received, bytes sent, workers that have died, and the counts
#: of the histograms `waiting`, `application` and `sending`, one after the other.
Sample = tuple[int, ...]

#: Begin and end in seconds since 1970, what has happened, and the memory of the workers at the end.
Ended = tuple[float, float, Sample, int]

#: Numbers of a sample before the histograms, and buckets of each of these.
COUNTERS = 5
BUCKETS = len(BOUNDS) + 1

NOTHING: Sample = (0,) * (COUNTERS + 3 * BUCKETS)


class History:
    """The slots of all services.

    Attributes:
        due: when `tick` has to be called at the latest, as monotonic time.
    """

    def __init__(self, generations: Generations, inherited: Inherited | None = None) -> None:
        """Begin with the present figures of all services, those of processes before included.

        Args:
            generations: have the figures.
            inherited: what `inheritance` has returned in the main process before this one.
        """
        self.due = float("inf")
        self._slots: dict[str, deque[Ended]] = {}
        #: The figures at the beginning of the slot under way.
        self._before = {
            service: _sample(figures(generations, service), _died(generations, service))
            for service in {pool.settings.service for pool in generations.serving}
        }
        self._begin = time.time()
        #: Workers that report their next request, while there is no slot under way.
        self._asked: set[WorkerHandle] = set()
        if inherited is not None:
            self._inherit(inherited)

    def tick(self, generations: Generations, now: float) -> None:
        """Begin a slot with the first request, and end it when it is due (monotonic time)."""
        if self.due == float("inf"):
            if self._has_begun(generations):
                self._asked.clear()
                self._begin = time.time()
                self.due = now + MINUTE
        elif self.due <= now:
            self._end_slot(generations, now)

    def slots(self, service: str, figures: Figures, died: int) -> list[Slot]:
        """Return the slots of the last hour, with the one under way.

        Args:
            service: its name.
            figures: those of the present.
            died: how many of its workers have died so far.
        """
        now = time.time()
        found = [each for each in self._slots.get(service, ()) if each[1] > now - HOUR]
        difference = _difference(_sample(figures, died), self._before.get(service, NOTHING))
        if difference != NOTHING:
            found.append((min(self._begin, now), now, difference, 0))
        return [_slot(*each) for each in found]

    def inheritance(self) -> Inherited:
        """Return what the next main process goes on with."""
        return {
            "begin": self._begin if self.due != float("inf") else time.time(),
            "before": {service: list(sample) for service, sample in self._before.items()},
            "slots": {
                service: [
                    (begin, end, list(sample), memory) for begin, end, sample, memory in slots
                ]
                for service, slots in self._slots.items()
            },
        }

    def _inherit(self, inherited: Inherited) -> None:
        """Go on with what another main process has known of the services that there are."""
        self._begin = inherited["begin"]
        # Its workers may serve requests until this one has the address.
        self.due = time.monotonic() + min(MINUTE, max(0.0, self._begin + MINUTE - time.time()))
        for service in self._before:
            before = tuple(inherited["before"].get(service, ()))
            # Another version of this package may have other figures.
            if len(before) != len(NOTHING):
                continue
            self._before[service] = before
            found: list[Ended] = [
                (begin, end, tuple(sample), memory)
                for begin, end, sample, memory in inherited["slots"].get(service, ())
            ]
            self._slots[service] = deque(found, MOST_SLOTS)

    def _has_begun(self, generations: Generations) -> bool:
        """Whether a request has begun; workers that do not report the next one yet will."""
        found = False
        for pool in generations:
            for worker in pool.workers.values():
                found |= worker.active
                if worker in self._asked:
                    continue
                self._asked.add(worker)
                if (status := pool.scoreboard.status(worker.slot)) is not None:
                    # Before its requests are counted, so that none begins unnoticed.
                    status.await_request()
                    found |= status.counts()[0] > 0
        return found

    def _end_slot(self, generations: Generations, now: float) -> None:
        asked = set()
        for pool in generations:
            for worker in pool.workers.values():
                worker.active = False
                if (status := pool.scoreboard.status(worker.slot)) is not None:
                    # Before the figures are read: a request is in them, or is reported.
                    status.await_request()
                asked.add(worker)
        end = time.time()
        goes_on = False
        for service in {pool.settings.service for pool in generations.serving}:
            present = figures(generations, service)
            sample = _sample(present, _died(generations, service))
            difference = _difference(sample, self._before.get(service, NOTHING))
            self._before[service] = sample
            slots = self._slots.setdefault(service, deque(maxlen=MOST_SLOTS))
            while slots and slots[0][1] <= end - HOUR:
                slots.popleft()
            if difference != NOTHING:
                # The clock may have been set back.
                slots.append(
                    (min(self._begin, end), end, difference, _memory(generations, service))
                )
            goes_on |= difference != NOTHING or present["in_flight"] > 0
        self._begin = end
        if goes_on:
            self.due = max(now, self.due + MINUTE)
        else:
            self._asked = asked
            self.due = float("inf")


def _memory(generations: Generations, service: str) -> int:
    """Return the resident bytes of all workers of a service."""
    pools = (pool for pool in generations if pool.settings.service == service)
    return sum(worker.usage()[1] for pool in pools for worker in pool.workers.values())


def _sample(figures: Figures, died: int) -> Sample:
    return (
        figures["requests"],
        figures["responses"]["5xx"],
        figures["bytes_received"],
        figures["bytes_sent"],
        died,
        *figures["waiting"]["counts"],
        *figures["application"]["counts"],
        *figures["sending"]["counts"],
    )


def _died(generations: Generations, service: str) -> int:
    return generations.totals[service].restarts["died"]


def _difference(later: Sample, before: Sample) -> Sample:
    return tuple(max(0, one - other) for one, other in zip(later, before, strict=True))


def _slot(begin: float, end: float, sample: Sample, memory: int) -> Slot:
    requests, errors, received, sent, died, *counts = sample
    return {
        "begin": begin,
        "end": end,
        "requests": requests,
        "errors": errors,
        "received": received,
        "sent": sent,
        "died": died,
        "memory": memory,
        "waiting": counts[:BUCKETS],
        "application": counts[BUCKETS : 2 * BUCKETS],
        "sending": counts[2 * BUCKETS :],
    }
