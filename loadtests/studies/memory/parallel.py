"""Requests at the same time: all are sent before the first answer is read."""

from __future__ import annotations

import selectors
import time
from contextlib import ExitStack

from loadtests.clients.connection import Connection, request_bytes
from loadtests.errors import ServerFailure
from loadtests.servers.running import Running

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
        with ExitStack() as stack, selectors.DefaultSelector() as waiting:
            for _ in range(count):
                connection = stack.enter_context(Connection(running.port, timeout=SECONDS / 2))
                waiting.register(connection, selectors.EVENT_READ, connection)
            for key in waiting.get_map().values():
                key.data.send(REQUEST)
            while waiting.get_map():
                ready = waiting.select(max(deadline - time.monotonic(), 0))
                if not ready:
                    raise ServerFailure(f"not answered within {SECONDS:g} s")
                for key, _ in ready:
                    answer = key.data.read()
                    if not running.application.accepts(answer, running.answer):
                        raise ServerFailure(f"an answer is wrong: status {answer.status}")
                    # At once, for some servers wait until their client has closed.
                    waiting.unregister(key.data)
                    key.data.close()
                    answered += 1
    except (OSError, ServerFailure) as error:
        running.processes()
        raise ServerFailure(f"{answered} of {count} parallel requests: {error}") from None
