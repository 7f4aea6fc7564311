"""The heaps of the C library that threads take memory from."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.testkit.server import Server

HEAPS = "tests/apps/heaps.py"


def heaps(**environment: str) -> int:
    """The number of heaps after six threads have taken memory at the same time."""
    with Server(HEAPS, "threading", "--threads", "6", env=environment) as server:
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(server.get, ["/"] * 6))
        return int(server.get("/heaps").body)


def test_threads_share_two_heaps() -> None:
    assert heaps() <= 2


def test_the_environment_says_how_many_heaps() -> None:
    assert heaps(MALLOC_ARENA_MAX="6") > 2
