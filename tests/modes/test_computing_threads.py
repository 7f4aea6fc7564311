"""Short requests beside threads that compute."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.testkit.server import Server, join, wait_for

COMPUTING = "tests/apps/computing.py"


@contextmanager
def clients(count: int, work: Callable[[], object]) -> Iterator[None]:
    """Threads that do this again and again meanwhile."""
    over = threading.Event()

    def repeat() -> None:
        while not over.is_set():
            work()

    threads = [threading.Thread(target=repeat) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        join(*threads)


def interval(of: Server, path: str = "/compute") -> str:
    return of.get(path).body.decode()


def test_threads_switch_sooner_while_short_requests_wait(mode: str) -> None:
    with Server(COMPUTING, mode) as server:
        assert interval(server) == "0.005"
        with clients(5, lambda: interval(server)):
            wait_for(lambda: interval(server, "/") == "0.001", "a short switch interval")
        # All compute for as long: nothing is gained by switching.
        with clients(5, lambda: interval(server)):
            wait_for(lambda: interval(server) == "0.005", "the usual switch interval")


def test_the_switch_interval_of_the_application_is_kept(mode: str) -> None:
    with Server(COMPUTING, mode) as server:
        assert interval(server, "/set?0.004") == "0.004"
        with clients(5, lambda: interval(server)):
            assert {interval(server, "/") for _ in range(20)} == {"0.004"}
