"""How many workers `workers = auto` decides on: simulated loads on a machine of four processors."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from poorhttp.plugins.autoscaling.worker_count import WorkerCount

if TYPE_CHECKING:
    from poorhttp.plugins.autoscaling.worker_count import Look

CPUS, LEAST, MOST, THREADS = 4.0, 4, 32, 8


@dataclass
class Load:
    """Clients that send their next request when they have the response.

    A request computes and waits for so many seconds; other programs use `others` processors, and
    there is memory for `room` workers. The machine has `more` processors, idle ones, that a quota
    of the cgroup does not allow.
    """

    clients: int
    computes: float = 0.0
    waits: float = 0.0
    others: float = 0.0
    room: int = MOST
    more: float = 0.0

    def share(self) -> float:
        """The part of a request for which it computes."""
        return self.computes / (self.computes + self.waits) if self.computes else 0.0

    def rate(self, workers: int, *, one_at_a_time: bool, clients: float | None = None) -> float:
        """Requests a second that so many workers answer."""
        clients = self.clients if clients is None else clients
        at_once = min(clients, workers * (1 if one_at_a_time else THREADS))
        takes = self.computes + self.waits
        rates = [at_once / takes if takes else 0.0]
        if self.computes:
            rates += [(CPUS - self.others) / self.computes, workers / self.computes]
        return min(rates)


IDLE = Load(0)
COMPUTES = Load(60, 0.005)
WAITS = Load(20, 0.0005, 0.1)
MIXED = Load(60, 0.005, 0.02)


def run(
    *parts: tuple[int, Load], one_at_a_time: bool = False, least: int = LEAST
) -> list[tuple[Load, int, float]]:
    """The load, the workers and the rate in each second; a worker needs one to begin."""
    chance = random.Random(7)
    count = WorkerCount(least, MOST, int(CPUS), one_at_a_time=one_at_a_time)
    seconds, workers, now, settled = [], least, 0.0, 0.0
    for length, load in parts:
        for half in range(2 * length):
            now += 0.5
            clients = load.clients * chance.uniform(0.9, 1.0)
            rate = load.rate(workers, one_at_a_time=one_at_a_time, clients=clients)
            used = rate * load.computes
            at_once = min(clients, workers * (1 if one_at_a_time else THREADS))
            look: Look = {
                "now": now,
                "workers": workers,
                "in_flight": round(at_once),
                "used": used,
                "delayed": max(0.0, at_once * load.share() - used),
                "idle": max(0.0, CPUS - load.others - used) + load.more,
                "held": 0.0,
                "room": load.room - workers,
            }
            if now >= settled and (change := count.decide(look)):
                assert change < 0 or look["room"] >= change
                workers, settled = workers + change, now + (change > 0)
            assert least <= workers <= MOST
            if half % 2:
                seconds.append((load, workers, rate))
    return seconds


CASES = {
    # What computes takes a worker for each processor, however much waits.
    "computes": (False, [(60, COMPUTES)], 4, 4),
    "computes, one at a time": (True, [(60, COMPUTES)], 4, 5),
    "overload": (False, [(60, Load(5000, 0.01, 0.01))], 4, 4),
    "others compute": (False, [(60, Load(60, 0.005, others=3.9))], 4, 4),
    "computes below a quota": (False, [(60, Load(60, 0.005, more=60))], 4, 4),
    "computes below a quota, one at a time": (True, [(60, Load(60, 0.005, more=60))], 4, 5),
    # Threads wait, and no worker is needed.
    "waits": (False, [(60, WAITS)], 4, 4),
    "waits, one at a time": (True, [(60, WAITS)], 20, 24),
    "waits while others compute": (True, [(60, Load(20, 0.0005, 0.1, others=3.9))], 19, 24),
    "overload, one at a time": (True, [(60, Load(5000, 0.01))], 4, 5),
    "mixed": (True, [(60, MIXED)], 18, 28),
    "back": (True, [(30, WAITS), (60, IDLE)], 4, 4),
    "step": (True, [(30, IDLE), (9, WAITS)], 20, 24),
    "more than there may be": (True, [(60, Load(500, 0.0005, 1.0))], MOST, MOST),
    "little memory": (True, [(60, Load(500, 0.0005, 1.0, room=7))], 7, 7),
    "memory that is gone": (True, [(30, WAITS), (30, Load(20, 0.0005, 0.1, room=6))], 6, 6),
    "bursts": (True, [(5, WAITS), (5, IDLE)] * 6, 19, 24),
}


@pytest.mark.parametrize("name", CASES)
def test_workers_follow_the_load(name: str) -> None:
    one_at_a_time, parts, least, most = CASES[name]
    seconds = run(*parts, one_at_a_time=one_at_a_time)
    load, workers, rate = seconds[-1]
    assert least <= workers <= most, [each[1] for each in seconds]
    best = max(
        load.rate(number, one_at_a_time=one_at_a_time)
        for number in range(LEAST, min(MOST, load.room) + 1)
    )
    assert rate >= 0.85 * best, [each[1] for each in seconds]


def test_a_worker_for_each_processor_from_one() -> None:
    workers = [each[1] for each in run((30, COMPUTES), least=1)]
    assert workers[15:] == [4] * 15, workers


@pytest.mark.parametrize("load", [MIXED, WAITS, COMPUTES])
def test_the_number_stays_in_a_steady_load(load: Load) -> None:
    workers = [each[1] for each in run((60, load), (600, load), one_at_a_time=True)][60:]
    assert max(workers) - min(workers) <= 1, workers


def test_workers_that_were_missed_are_kept() -> None:
    seconds = run((20, WAITS), (25, IDLE), (20, WAITS), (500, IDLE), one_at_a_time=True)
    workers = [each[1] for each in seconds]
    assert workers[44] == LEAST
    assert min(workers[60:]) > LEAST, workers
