"""Simulates which of many workers accepts a connection, and how many are woken for it.

What a wake-up costs and how long it takes is left out: a connection is accepted when it arrives,
or as soon as a worker is idle.
"""

from __future__ import annotations

import heapq
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

WOKEN = 4
"""As in core/reactor/src/overload/accept_balance.rs."""
KEPT, COMPUTING = "kept connections", "computing requests"
PER_WORKER = 10
"""Connections of a worker, if they are kept."""
LOAD = 0.7
"""Of all workers, if each computes one request at a time, each on a connection of its own."""


class Outcome(NamedTuple):
    """What a way to choose leads to.

    `busiest` is the number of connections of the busiest worker, or of its requests, against the
    mean; `woken` are workers for each connection; `waited` is the 99th percentile of the time until
    a worker is idle, as a multiple of the time for a request.
    """

    busiest: float
    woken: float
    waited: float


@dataclass
class Workers:
    """Connections of each worker, and which workers cannot accept because they compute."""

    random: random.Random
    connections: list[int]
    turns: list[int]
    each: set[int]
    busy: set[int] = field(default_factory=set)

    def idle(self) -> list[int]:
        """Workers that wait for connections, those first whose turn it is."""
        return [one for one in self.turns if one not in self.busy]

    def fewest(self, woken: Sequence[int], least: int) -> int:
        """One of those that do not leave the connection to the one that has the `least`."""
        willing = [one for one in woken if self.connections[one] <= least + max(1, least // 8)]
        return self.random.choice(willing or woken)

    def to_the_end(self, one: int) -> None:
        self.turns.remove(one)
        self.turns.append(one)


def all_woken_quickest(workers: Workers, idle: Sequence[int]) -> tuple[int, int]:
    """All idle workers are woken, and any of them accepts."""
    return workers.random.choice(idle), len(idle)


def all_woken_fewest(workers: Workers, idle: Sequence[int]) -> tuple[int, int]:
    """All idle workers are woken; those with more connections than another leave it to that."""
    return workers.fewest(idle, min(workers.connections[one] for one in idle)), len(idle)


def first_woken(workers: Workers, idle: Sequence[int]) -> tuple[int, int]:
    """EPOLLEXCLUSIVE alone: always the first in the queue."""
    return min(idle), 1


def next_woken(workers: Workers, idle: Sequence[int]) -> tuple[int, int]:
    """EPOLLEXCLUSIVE, and who has accepted goes to the end of the queue."""
    workers.to_the_end(idle[0])
    return idle[0], 1


def few_woken_fewest(workers: Workers, idle: Sequence[int]) -> tuple[int, int]:
    """Ours: the four with the fewest connections and the next one; then these are found anew."""
    each, held = workers.each, workers.connections
    woken = [one for one in idle if one in each]
    woken += [one for one in idle if one not in each][:1]
    chosen = workers.fewest(woken, min((held[one] for one in each), default=held[woken[0]]))
    held[chosen] += 1
    for one in woken:
        fewer = sum((held[other], other) < (held[one], one) for other in each if other != one)
        took_turns = one not in each
        (each.discard if fewer >= WOKEN else each.add)(one)
        if took_turns or fewer >= WOKEN:
            workers.to_the_end(one)
    held[chosen] -= 1
    return chosen, len(woken)


POLICIES: dict[str, Callable[[Workers, Sequence[int]], tuple[int, int]] | None] = {
    "all woken, the quickest accepts": all_woken_quickest,
    "all woken, fewest connections": all_woken_fewest,
    "first of the queue (EPOLLEXCLUSIVE)": first_woken,
    "next of the queue (nginx)": next_woken,
    "by a hash (reuse_port)": None,
    "four with the fewest and the next (ours)": few_woken_fewest,
}
"""None: each worker has a queue of its own."""


def simulate(policy: str, load: str, count: int, arrivals: int, seed: int = 1) -> Outcome:
    """So many connections arrive at random at `count` workers.

    Kept ones last a random time, and each time that such a connection lasts in the mean one worker
    is replaced: its clients connect again at once.
    """
    chance, choose = random.Random(seed), POLICIES[policy]
    workers = Workers(chance, [0] * count, list(range(count)), set(range(count)))
    keeps = load == KEPT
    rate = count * (PER_WORKER if keeps else LOAD)
    ends: list[tuple[float, int, int]] = []
    generations = [0] * count
    queues: dict[int, list[float]] = {}
    now, restart, woken, accepted = 0.0, 2.0, 0, 0
    handled, waits, shares = [0] * count, list[float](), list[float]()

    def accept(arrived: float, at: float) -> None:
        nonlocal woken, accepted
        if choose is None:
            worker, roused = chance.randrange(count), 1
        else:
            idle = workers.idle()
            worker, roused = choose(workers, idle) if idle else (-1, 0)
        if worker < 0 or worker in workers.busy:
            queues.setdefault(worker, []).append(arrived)
            return
        woken, accepted = woken + roused, accepted + 1
        begin(worker, arrived, at)

    def begin(worker: int, arrived: float, at: float) -> None:
        workers.connections[worker] += 1
        handled[worker] += 1
        waits.append(at - arrived)
        if not keeps:
            workers.busy.add(worker)
        end = at + (chance.expovariate(1.0) if keeps else 1.0)
        heapq.heappush(ends, (end, worker, generations[worker]))

    for _ in range(arrivals):
        now += chance.expovariate(rate)
        while ends and ends[0][0] <= now:
            at, worker, generation = heapq.heappop(ends)
            if generation != generations[worker]:
                continue
            workers.connections[worker] -= 1
            workers.busy.discard(worker)
            if queue := queues.get(worker) or queues.get(-1):
                # It takes from the queue before it waits, so it need not be woken.
                accepted += 1
                begin(worker, queue.pop(0), at)
        if keeps and now > restart:
            restart += 1.0
            replaced = chance.randrange(count)
            again, workers.connections[replaced] = workers.connections[replaced], 0
            generations[replaced] += 1
            for _ in range(again):
                accept(now, now)
        accept(now, now)
        if keeps and now > 2.0:
            shares.append(max(workers.connections) / statistics.fmean(workers.connections))
    busiest = statistics.fmean(shares) if keeps else max(handled) / statistics.fmean(handled)
    return Outcome(busiest, woken / accepted, statistics.quantiles(waits, n=100)[98])
