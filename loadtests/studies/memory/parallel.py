"""Requests at the same time: all are sent before the first answer is read."""

from __future__ import annotations

import time
from contextlib import ExitStack

from loadtests.connection import Connection, request_bytes
from loadtests.errors import ServerFailure
from loadtests.process import Running

SECONDS = 20.0
"""Within which all must be answered."""
REQUEST = request_bytes("/", [("Connection", "close")])


def ask(running: Running, count: int) -> None:
    """So many requests at once, each on a connection of its own.

    Raises ServerFailure if one is not answered, or wrongly.
    """
    deadline = time.monotonic() + SECONDS
    answered = 0
    try:
        with ExitStack() as stack:
            connections = [
                stack.enter_context(Connection(running.port, timeout=SECONDS / 2))
                for _ in range(count)
            ]
            for connection in connections:
                connection.send(REQUEST)
            for connection in connections:
                if time.monotonic() > deadline:
                    raise ServerFailure(f"not answered within {SECONDS:g} s")
                answer = connection.read()
                if not running.application.accepts(answer, running.answer):
                    raise ServerFailure(f"an answer is wrong: status {answer.status}")
                answered += 1
    except (OSError, ServerFailure) as error:
        running.processes()
        raise ServerFailure(f"{answered} of {count} parallel requests: {error}") from None
