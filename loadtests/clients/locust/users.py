"""The locustfile of the lab's own users: visitors of a page, and injectors that begin in turn."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import gevent
from locust import FastHttpUser, constant, task
from locust.exception import StopUser

from loadtests.clients.locust import recorder
from loadtests.clients.locust.recorder import PLAN
from loadtests.measure.waiting import patience

PATIENCE = patience(5.0)


class Visitor(FastHttpUser):
    """Requests a page repeatedly."""

    wait_time = constant(0)
    connection_timeout = network_timeout = PATIENCE

    @task
    def visit(self) -> None:
        self.client.get(PLAN["target"], headers=PLAN["headers"])


class Injector(FastHttpUser):
    """Makes a number of requests of random targets in sequence, from its turn on."""

    wait_time = constant(0)
    connection_timeout = network_timeout = PATIENCE
    targets: Iterator[str]

    def on_start(self) -> None:
        number = self.environment.runner.worker_index
        chance = random.Random(f"{PLAN['seed']} {number}")
        self.targets = iter([chance.choice(PLAN["targets"]) for _ in range(PLAN["requests"])])
        turn = recorder.begin.get() + number * PLAN["stagger"]
        gevent.sleep(max(turn - time.time(), 0))

    @task
    def inject(self) -> None:
        """Makes the next request, if there still is one."""
        if (target := next(self.targets, None)) is None:
            recorder.finish()
            raise StopUser
        self.client.get(target, name="target")
