"""How much counters and histograms have grown since they were last sent.

What was sent is kept in memory that outlives the admin process: its successor, after a reload, an
upgrade or a crash, sends each event once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from poorhttp.plugins.monitor.metrics.families import Family, Sample

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    #: Counters and histograms at one moment: the number of a counter, or the numbers of all buckets
    #: and the sum.
    Numbers: TypeAlias = dict[str, list[float]]

#: Bytes before the text: the process that sends, and the length of the text.
HEADER = 16


class Sent:
    """What was sent last: in memory that the main process shares with the processes that send.

    Attributes:
        fd: the memory's descriptor.
    """

    def __init__(self, fd: int = -1) -> None:
        """Make it in the main process, before it forks the first one; or use that of `fd`."""
        self.fd = os.memfd_create("poorhttp-sent") if fd < 0 else fd

    def take_over(self) -> None:
        """Become the process that sends: another one stops at its next interval."""
        os.pwrite(self.fd, os.getpid().to_bytes(8, "little"), 0)

    @property
    def is_ours(self) -> bool:
        """Whether this process still sends."""
        return int.from_bytes(os.pread(self.fd, 8, 0), "little") == os.getpid()

    def read(self) -> Numbers | None:
        """Return what was sent; `None` if nothing was yet, or a process was killed meanwhile."""
        length = int.from_bytes(os.pread(self.fd, 8, 8), "little")
        if not length:
            return None
        import json  # only where something is sent

        found: Numbers = json.loads(os.pread(self.fd, length, HEADER))
        return found

    def write(self, numbers: Numbers) -> None:
        """Keep what is about to be sent. Killed in the middle, it leaves nothing."""
        import json

        text = json.dumps(numbers, separators=(",", ":")).encode()
        os.pwrite(self.fd, bytes(8), 8)
        os.pwrite(self.fd, text, HEADER)
        os.pwrite(self.fd, len(text).to_bytes(8, "little"), 8)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.fd)


def key(family: Family, sample: Sample) -> str:
    """Return the key of a counter or a histogram in `Numbers`."""
    return "\t".join([family.name, *sample.labels.values()])


def numbers(metrics: Iterable[tuple[Family, Sequence[Sample]]]) -> Numbers:
    """Return the numbers of all counters and histograms."""
    return {
        key(family, sample): _numbers(family, sample)
        for family, samples in metrics
        if family.kind in ("counter", "histogram")
        for sample in samples
    }


def _numbers(family: Family, sample: Sample) -> list[float]:
    if family.kind == "histogram":
        return [*sample.durations["counts"], sample.durations["sum"]]
    return [sample.number]


def growth(now: Numbers, before: Mapping[str, Sequence[float]]) -> Numbers:
    """Return how much each has grown. What is new, or has begun again at 0, counts in full."""
    grown = {}
    for name, values in now.items():
        earlier = before.get(name, ())
        changes = [value - other for value, other in zip(values, earlier, strict=False)]
        is_continued = len(earlier) == len(values) and min(changes) >= 0
        grown[name] = changes if is_continued else values
    return grown
