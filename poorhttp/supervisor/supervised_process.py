"""Runs one process of a component: forked when it is missing, replaced however often it dies."""

from __future__ import annotations

from poorhttp.supervisor.scoreboard import Totals
from poorhttp.supervisor.worker_pool import WorkerPool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.worker.service import Service


def pool(service: Service, noun: str) -> WorkerPool:
    """Return the worker pool of one process that serves `service`, which has its application.

    The component returns the pool from `pools`, and calls its `tick` in its own `tick`: that forks
    the process, with the rights of `user`. `noun` names the process in the log, as `the process
    that answers at admin,`.
    """
    service.loaded = service.serving = True
    made = WorkerPool(service, Totals())
    made.noun = noun
    # A pool that was never complete gives up when its process ends early.
    made.complete = True
    return made
