"""Requests that have ended: the slowest, the last errors and the last refusals of a service."""

from __future__ import annotations

from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp._core import WorkerStatus
    from poorhttp.plugins.monitor.admin.model import Finished, Refusal

#: Entries of each of them.
MOST = 20


def finished(
    statuses: Iterable[WorkerStatus],
) -> tuple[list[Finished], list[Finished], list[Refusal]]:
    """Return those of all these workers, the slowest first, the others newest first."""
    slowest: list[Finished] = []
    errors: list[Finished] = []
    refusals: list[Refusal] = []
    for status in statuses:
        slow, failed, refused = status.finished()
        slowest += slow
        errors += failed
        refusals += refused
    slowest.sort(key=lambda each: -each["waited"] - each["application"] - each["sending"])
    errors.sort(key=lambda each: -each["when"])
    refusals.sort(key=lambda each: -each["when"])
    return slowest[:MOST], errors[:MOST], refusals[:MOST]
