"""Quantiles, sums and rates, computed from status documents."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from poorhttp.plugins.monitor.admin.model import BOUNDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from poorhttp.plugins.monitor.admin.model import Figures, Service, Status

    class Rates(TypedDict):
        """Per second: requests, responses with 5xx, and bytes."""

        requests: float
        errors: float
        received: float
        sent: float


#: Seconds over which the rates of the present moment are computed, at least and at most.
SHORTEST, LONGEST = 0.5, 12.0


def quantile(counts: Sequence[float], part: float) -> float | None:
    """Return the duration that `part` of a histogram do not exceed; `None`: it is empty.

    Interpolated in its bucket, as `histogram_quantile` of Prometheus: of the last bucket, which is
    open, its lower bound.
    """
    rank = part * sum(counts)
    passed = 0.0
    for number, count in enumerate(counts):
        if count and passed + count >= rank:
            if number >= len(BOUNDS):
                return BOUNDS[-1]
            lower = BOUNDS[number - 1] if number else 0.0
            return lower + (BOUNDS[number] - lower) * (rank - passed) / count
        passed += count
    return None


def added(histograms: Iterable[Sequence[int]]) -> list[int]:
    """Return the sum of histograms."""
    sums = [0] * (len(BOUNDS) + 1)
    for counts in histograms:
        sums = [one + other for one, other in zip(sums, counts, strict=True)]
    return sums


def queue_length(service: Service) -> int:
    """Return how many requests wait: in a worker for a thread, or in the kernel for a worker."""
    unaccepted = sum(each["waiting"] for each in service["accept_queues"])
    # A worker may know of requests that it has not read yet: they are in both numbers.
    return unaccepted + max(service["figures"]["queued"], service["unread"])


def counters(figures: Figures) -> tuple[int, int, int, int]:
    """Return requests, responses with 5xx, bytes received, bytes sent."""
    return (
        figures["requests"],
        figures["responses"]["5xx"],
        figures["bytes_received"],
        figures["bytes_sent"],
    )


class Recent:
    """The counters of documents of the last seconds, for the rates at this moment."""

    def __init__(self) -> None:
        #: Time, counters by service, seconds of the processor by process ID.
        self._samples: deque[
            tuple[float, dict[str, tuple[int, int, int, int]], dict[int, float]]
        ] = deque(maxlen=64)

    def add(self, status: Status) -> None:
        """Add a document."""
        now = status["now"]
        # The clock may have been set back.
        while self._samples and not now - LONGEST <= self._samples[0][0] <= now:
            self._samples.popleft()
        services = {each["name"]: counters(each["figures"]) for each in status["services"]}
        cpu = {one["pid"]: one["cpu"] for each in status["services"] for one in each["workers"]}
        self._samples.append((now, services, cpu))

    def rates(self, service: Service) -> Rates:
        """Return the rates of the last seconds, or of the last minute if nothing later is known."""
        name = service["name"]
        last, services, _ = self._samples[-1]
        for when, before, _ in self._samples:
            if last - when < SHORTEST:
                break
            if name in before:
                return _rates(last - when, services[name], before[name])
        slots = service["history"][-2:]
        if not slots or last - slots[-1]["end"] > 60:
            return _rates(1.0, (0, 0, 0, 0), (0, 0, 0, 0))
        begin = slots[0]["begin"]
        sums = (
            sum(slot["requests"] for slot in slots),
            sum(slot["errors"] for slot in slots),
            sum(slot["received"] for slot in slots),
            sum(slot["sent"] for slot in slots),
        )
        return _rates(max(1.0, last - begin), sums, (0, 0, 0, 0))

    def cpu(self, pid: int) -> float | None:
        """Return what part of one processor a process has used; `None`: not known yet."""
        last, _, latest = self._samples[-1]
        for when, _, before in self._samples:
            if last - when < SHORTEST:
                break
            if pid in before and pid in latest:
                return max(0.0, latest[pid] - before[pid]) / (last - when)
        return None


def _rates(
    seconds: float, later: tuple[int, int, int, int], before: tuple[int, int, int, int]
) -> Rates:
    requests, errors, received, sent = (
        max(0, one - other) / seconds for one, other in zip(later, before, strict=True)
    )
    return {"requests": requests, "errors": errors, "received": received, "sent": sent}
