"""Simulates what N workers on N cores share: the accept lock, wake-ups, the main process.

Requests, files and applications are not here: workers share nothing for them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

US = 1e-6


@dataclass(frozen=True)
class Costs:
    """Seconds of CPU time. docs/internals/scaling.md has the command that measures each.

    Attributes:
        connection: a connection with one short request, in the worker that accepts it.
        woken: each further worker that is woken for it.
        most_woken: workers woken for a connection, as long as so many are idle.
        line: reading a line of the scoreboard that another core has changed; a worker that is woken
            reads two for each worker, and eight more.
        lock: under the lock of the listening socket, for each connection (estimated).
        wake: a wake-up of the main process.
        wake_each: more of that for each worker.
        checks: wake-ups of the main process in a second while all workers have requests; None: one
            for each worker.
    """

    connection: float = 80 * US
    woken: float = 5 * US
    most_woken: int = 5
    line: float = 0.1 * US
    lock: float = 1 * US
    wake: float = 250 * US
    wake_each: float = 55 * US
    checks: float | None = 2


class Load(NamedTuple):
    """Shares of what they can do: of the main process, of the accept lock, of all workers."""

    main: float
    lock: float
    workers: float


def _each(costs: Costs, workers: int, woken: float) -> float:
    """CPU time of all workers for one connection that so many are woken for."""
    lines = (2 * workers + 8) * costs.line
    return costs.connection + (woken - 1) * costs.woken + woken * lines


def expected(costs: Costs, workers: int, rate: float) -> Load:
    """By the model: for so many connections in a second, while workers are idle."""
    woken = min(costs.most_woken, workers)
    checks = workers if costs.checks is None else costs.checks
    return Load(
        checks * (costs.wake + workers * costs.wake_each),
        rate * costs.lock,
        rate * _each(costs, workers, woken) / workers,
    )


def limit(costs: Costs, workers: int) -> tuple[str, float]:
    """What is used up first when connections come faster, and at how many in a second."""
    one = expected(costs, workers, 1.0)
    ends = {"main process": 0.0 if one.main >= 1 else float("inf")}
    ends |= {"accept lock": 1 / one.lock, "workers": 1 / one.workers}
    first = min(ends, key=ends.__getitem__)
    return first, ends[first]


def simulated(costs: Costs, workers: int, rate: float, arrivals: int, seed: int = 1) -> Load:
    """Event by event: connections come at random, and wake workers that are idle just then."""
    chance = random.Random(seed)
    free = [0.0] * workers  # when each worker is idle again
    used, locked, lock_free, now = 0.0, 0.0, 0.0, 0.0
    for _ in range(arrivals):
        now += chance.expovariate(rate)
        idle = [one for one, at in enumerate(free) if at <= now]
        woken = chance.sample(idle, min(len(idle), costs.most_woken)) or [
            min(range(workers), key=free.__getitem__)
        ]
        begin = max(now, lock_free, free[woken[0]])
        lock_free, locked = begin + costs.lock, locked + costs.lock
        lines = (2 * workers + 8) * costs.line
        for place, one in enumerate(woken):
            takes = lines + (costs.woken if place else costs.connection)
            free[one] = max(begin, free[one]) + takes
            used += takes
    return Load(_main(costs, workers, 5, chance), locked / now, used / now / workers)


def _main(costs: Costs, workers: int, seconds: int, chance: random.Random) -> float:
    """The share of its time that the main process is awake, if it checks workers each second.

    What is due while it is awake, it does in the same wake-up, or in the next.
    """
    phases = [chance.random() for _ in range(workers)]
    if costs.checks is not None:
        phases = [round(one * costs.checks) / costs.checks for one in phases]
    due = sorted(phase + second for phase in phases for second in range(seconds))
    awake, until, place = 0.0, 0.0, 0
    while place < len(due):
        begin = max(due[place], until)
        while place < len(due) and due[place] <= begin:
            place += 1
        takes = costs.wake + workers * costs.wake_each
        awake, until = awake + takes, begin + takes
    return awake / max(until, seconds)


def table(say: Callable[[str], object] = print) -> None:
    """What breaks first, at 1 to 256 workers, before and after checks were put together."""
    for name, costs in (
        ("checks of each worker at its own moment", replace(Costs(), checks=None)),
        ("checks of all workers together", Costs()),
    ):
        say(f"{name}:")
        for workers in (1, 2, 8, 64, 256):
            rate = 0.5 * limit(Costs(), workers)[1]
            model, found = expected(costs, workers, rate), simulated(costs, workers, rate, 5_000)
            first, most = limit(costs, workers)
            shares = ", ".join(
                f"{what} {100 * by:.1f} % (simulated {100 * of:.1f} %)"
                for what, by, of in zip(Load._fields, model, found, strict=True)
            )
            say(f"  {workers:3} workers, {rate:9,.0f} connections/s: {shares}; {first} {most:,.0f}")


if __name__ == "__main__":
    table()
