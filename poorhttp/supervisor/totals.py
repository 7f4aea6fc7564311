"""What a service has done so far, by workers that are gone."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    #: Requests begun, requests in hand, connections, and answers (1xx to 5xx).
    Counts: TypeAlias = tuple[int, int, int, list[int]]

#: What nobody has counted.
NOTHING: Counts = (0, 0, 0, [0] * 5)


def added(one: Counts, other: Counts) -> Counts:
    """Return both together."""
    answers = [first + second for first, second in zip(one[3], other[3], strict=True)]
    return one[0] + other[0], one[1] + other[1], one[2] + other[2], answers


class Totals:
    """Of one service; they outlive its workers, and its teams.

    Attributes:
        ended: what workers had counted that have ended; of those nothing is in hand any more.
        died: workers that were replaced because they died.
        worn: workers that were replaced because they were worn (`max_requests` and the like).
    """

    __slots__ = ("died", "ended", "worn")

    def __init__(self) -> None:
        self.ended = NOTHING
        self.died = 0
        self.worn = 0

    def bury(self, counts: Counts) -> None:
        """Keep what a worker has counted that has just ended."""
        self.ended = added(self.ended, (counts[0], 0, 0, counts[3]))
