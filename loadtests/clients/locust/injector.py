"""The locustfile of an injector: a user that makes a number of requests in sequence."""

from __future__ import annotations

import random
import time

import gevent
from locust import FastHttpUser, constant
from locust.exception import StopUser

from loadtests.clients.locust import recorder
from loadtests.clients.locust.recorder import PLAN

PATIENCE = 5.0


def inject(user: Injecting) -> None:
    """Asks for any of the targets, if there still is a request to be made."""
    if not user.left:
        recorder.finish()
        raise StopUser
    user.left -= 1
    user.client.get(user.chance.choice(PLAN["targets"]), name="target")


class Injecting(FastHttpUser):
    """Begins when it is its turn."""

    wait_time = constant(0)
    connection_timeout = network_timeout = PATIENCE
    tasks = [inject]  # noqa: RUF012

    left = 0
    chance = random.Random()

    def on_start(self) -> None:
        """Waits for its turn."""
        number = self.environment.runner.worker_index
        self.left = PLAN["requests"]
        self.chance = random.Random(f"{PLAN['seed']} {number}")
        turn = recorder.begin.get() + number * PLAN["stagger"]
        gevent.sleep(max(turn - time.time(), 0))
