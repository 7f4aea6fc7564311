"""The outcome of every request of a run of `fetch`."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from loadtests.clients.load import KINDS
from loadtests.errors import LabError

T = TypeVar("T", float, "tuple[float, int]")

MAGIC = 0x3165636172746C
FIELDS = 9
RIGHT = 0
POINTS = 201
"""At most so many stand for a curve."""


class Trace:
    """The requests in order of their intended times, a column for each field.

    Times are microseconds from the beginning of the run, 0 for what never happened: `intended` is
    when a request should have been sent, `sent` when connect(2) was called for it, `connected` when
    the connection was there and the request went out, `answered` when the first 15 octets of the
    answer had come, `ended` when all of it had, or when it was given up. On a connection that was
    there `connected` is `sent`, and without a clock `intended` is `sent`, too.

    `octets` came, head included; `status` is that of the answer, 0 without one; `kind` is an index
    of KINDS; `target` a number in the order of the visits, from 0.

    `began` is the beginning by time.monotonic(), `seconds` what the run took, and `stopped` says
    that too many requests were unanswered.
    """

    def __init__(self, numbers: array[int], *, began: float, seconds: float, stopped: bool) -> None:
        self.began = began
        self.seconds = seconds
        self.stopped = stopped
        columns = [numbers[field::FIELDS] for field in range(FIELDS)]
        self.intended, self.sent, self.connected, self.answered, self.ended = columns[:5]
        self.octets, self.status, self.kind, self.target = columns[5:]

    def __len__(self) -> int:
        return len(self.kind)

    def _between(self, begin: array[int], end: array[int]) -> list[int]:
        return [end[row] - begin[row] for row, kind in enumerate(self.kind) if kind == RIGHT]

    def connect(self) -> list[int]:
        """Microseconds from the SYN to the connection, of the requests that succeeded."""
        return self._between(self.sent, self.connected)

    def processing(self) -> list[int]:
        """Microseconds from the request to the end of the answer."""
        return self._between(self.connected, self.ended)

    def answer(self) -> list[int]:
        """Microseconds from the intended time to the first 15 bytes of the answer."""
        return self._between(self.intended, self.answered)

    def total(self) -> list[int]:
        """Microseconds from the intended time to the end of the answer."""
        return self._between(self.intended, self.ended)

    def failed(self) -> dict[str, int]:
        """Numbers of failed requests, by kind."""
        counts = Counter(self.kind)
        return {name: counts[kind] for kind, name in enumerate(KINDS) if kind and counts[kind]}


def curve(values: Sequence[T], points: int = POINTS) -> list[T]:
    """The values in order of size, or so many of them, from the lowest evenly to the highest.

    What stands at `i` has the rank `i / (points - 1)` of all.
    """
    ordered = sorted(values)
    if len(ordered) <= points:
        return ordered
    last = len(ordered) - 1
    return [ordered[round(point * last / (points - 1))] for point in range(points)]


def read(path: Path) -> Trace:
    """The trace that `fetch` wrote. Raises LabError if it is none, or is cut off."""
    numbers = array("Q")
    numbers.frombytes(path.read_bytes())
    if len(numbers) < FIELDS or numbers[0] != MAGIC or len(numbers) != FIELDS * (numbers[1] + 1):
        raise LabError(f"the trace {path.name} is not whole")
    _, _, began, lasted, stopped = numbers[:5]
    rows = numbers[FIELDS:]
    return Trace(rows, began=began / 1e9, seconds=lasted / 1e9, stopped=bool(stopped))
