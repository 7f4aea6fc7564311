"""Sums the figures of all workers of a service, those of main processes before included."""

from __future__ import annotations

import time

from poorhttp.plugins.native import sum_figures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp._core import WorkerStatus
    from poorhttp.plugins.monitor.admin.model import Figures
    from poorhttp.supervisor.generations import Generations

#: How often and after which pause (in seconds) figures are added again, because a worker of the
#: main process before has ended meanwhile.
TRIES = 20
PAUSE = 0.001


def figures(generations: Generations, service: str) -> Figures:
    """Return the sums of everything that workers of a service count, or have counted."""
    totals = generations.totals[service]
    totals.fold()
    for _ in range(TRIES):
        moves = [each.ended.moves() for each in totals.before]
        ended, others = totals.all_ended(), generations.alive(service)
        for each in totals.before:
            (others if each.is_alive() else ended).extend(each.workers)
        found: Figures = sum_figures(others, ended)
        # One that stays odd is that of a main process that was killed then.
        is_moving = any(number % 2 for number in moves)
        if not is_moving and moves == [each.ended.moves() for each in totals.before]:
            break
        time.sleep(PAUSE)
    return found


def statuses(generations: Generations, service: str) -> list[WorkerStatus]:
    """Return the statuses of all workers of a service, also of those that have ended."""
    return [*generations.alive(service), *generations.totals[service].statuses]
