"""The locustfile of a load: users that request a page repeatedly."""

from __future__ import annotations

from locust import FastHttpUser, constant

from loadtests.clients.locust.recorder import PLAN

PATIENCE = 5.0
HEADERS = {} if PLAN["keep"] else {"Connection": "close"}


def visit(user: FastHttpUser) -> None:
    """Asks for it."""
    user.client.get(PLAN["target"], headers=HEADERS)


class Visitor(FastHttpUser):
    """Never waits."""

    wait_time = constant(0)
    connection_timeout = network_timeout = PATIENCE
    tasks = [visit]  # noqa: RUF012
