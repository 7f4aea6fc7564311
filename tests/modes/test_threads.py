"""Threads: their heaps, computing ones beside short requests, connections that wait for them."""

from __future__ import annotations

import selectors
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.testkit.server import Server, join, wait_for

COMPUTING = "tests/apps/computing.py"


def heaps(**environment: str) -> int:
    """The number of heaps after six threads have taken memory at the same time."""
    options = ("--threads", "6")
    with Server("tests/apps/heaps.py", "threading", *options, env=environment) as server:
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(server.get, ["/"] * 6))
        return int(server.get("/heaps").body)


def test_threads_share_two_heaps_unless_the_environment_says_how_many() -> None:
    assert heaps() <= 2
    assert heaps(MALLOC_ARENA_MAX="6") > 2


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


def test_threads_switch_sooner_while_short_requests_wait() -> None:
    with Server(COMPUTING, "threading") as server:
        assert interval(server) == "0.005"
        with clients(5, lambda: interval(server)):
            wait_for(lambda: interval(server, "/") == "0.001", "a short switch interval")
        # All compute for as long: nothing is gained by switching.
        with clients(5, lambda: interval(server)):
            wait_for(lambda: interval(server) == "0.005", "the usual switch interval")


def test_the_switch_interval_of_the_application_is_kept() -> None:
    with Server(COMPUTING, "threading") as server:
        assert interval(server, "/set?0.004") == "0.004"
        with clients(5, lambda: interval(server)):
            assert {interval(server, "/") for _ in range(20)} == {"0.004"}


#: Connections, far more than threads.
CLIENTS = 60
#: Responses on one connection before each has had its first. With one connection accepted after
#: each round of those that wait, it is some 30.
ROUNDS = 15
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"

APPLICATION = """\
import time

def application(environ, start_response):
    time.sleep(0.01)
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"""


def test_nobody_waits_for_many_rounds_to_be_accepted(mode: str, tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(APPLICATION)
    with Server(str(app), mode, "--workers", "2", "--threads", "2") as server:
        poller, answered = selectors.DefaultSelector(), dict.fromkeys(range(CLIENTS), 0)
        connections = [server.connect() for _ in range(CLIENTS)]
        for number, connection in enumerate(connections):
            connection.send(REQUEST)
            poller.register(connection.socket, selectors.EVENT_READ, number)
        while not all(answered.values()):
            for key, _ in poller.select():
                socket = connections[key.data].socket
                assert socket.recv(4096).startswith(b"HTTP/1.1 200 ")
                answered[key.data] += 1
                socket.sendall(REQUEST)
        assert max(answered.values()) <= ROUNDS, sorted(answered.values())
