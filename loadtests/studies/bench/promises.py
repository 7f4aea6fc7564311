"""The promised figures of `show`, and how each is read from the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from loadtests.reporting.model import MIB
from loadtests.reporting.promises import Places, Promise
from loadtests.stats.results import Results, Spread

SINGLE = "poorhttp single"
LOGGED = "poorhttp single + log"
THREADING = "poorhttp threading 8"
GEVENT = "poorhttp gevent"
CPU = "cpu_us"

Read: TypeAlias = Callable[[Results], Places]


def _mode(server: str) -> str:
    return server.removeprefix("poorhttp ")


def _at(place: str, read: Callable[[Results], Spread | None], scale: float = 1) -> Read:
    """What was measured in this one place, if it was."""

    def places(results: Results) -> Places:
        found = read(results)
        if found is None:
            return {}
        median, low, high = (value * scale for value in found[:3])
        return {place: Spread(median, low, high, found.rounds)}

    return places


def _median(scenario: str, server: str, field: str, scale: float = 1) -> Read:
    return _at(_mode(server), lambda results: results.median(scenario, server, field), scale)


def _ratio(scenario: str, server: str, against: str, field: str = CPU) -> Read:
    return _at(_mode(server), lambda results: results.ratio(scenario, server, against, field))


def _figure(experiment: str, server: str, name: str, scale: float = 1) -> Read:
    return _at(_mode(server), lambda results: results.figure(experiment, server, name), scale)


def _best_peer(scenario: str, field: str, *, highest: bool = False) -> Read:
    """The ratio to the best peer, whose name is the place."""

    def read(results: Results) -> Places:
        best = results.best_peer(scenario, field, highest=highest)
        found = results.ratio(scenario, SINGLE, best, field) if best else None
        return {f"single to {best}": found} if found else {}

    return read


def _neighbours(server: str, field: str, words: str, limit: float) -> Promise:
    return Promise(
        "neighbours",
        f"beside a request that sleeps 1 s, {_mode(server)}: {words} of the others",
        limit,
        "ms",
        _median("beside-4", server, field, 1e-3),
    )


def _pss(server: str, words: str, limit: float) -> Promise:
    return Promise(
        "memory",
        f"PSS after 1,000 requests for `light`, {words}",
        limit,
        "MiB",
        _figure("memory", server, "pss", MIB),
        places=1,
    )


PROMISES = (
    *(
        Promise(
            "cost",
            f"CPU per request, {words}, against the floor",
            limit,
            "×",
            _ratio(scenario, server, "floor"),
        )
        for scenario, server, limit, words in (
            ("hello-64", SINGLE, 1.20, "64 connections"),
            ("hello-512", SINGLE, 1.20, "512 connections"),
            ("hello-64", LOGGED, 1.25, "64 connections, access log on"),
            ("hello-512", LOGGED, 1.25, "512 connections, access log on"),
        )
    ),
    *(
        Promise(
            "cost",
            f"CPU per request, {words}, against the best peer",
            0.90,
            "×",
            _best_peer(scenario, CPU),
        )
        for scenario, words in (
            ("hello-1", "1 connection"),
            ("hello-64", "64 connections"),
            ("hello-512", "512 connections"),
            ("browser-64", "64 connections, 12 request headers"),
        )
    ),
    Promise(
        "cost",
        "requests/s, 64 connections × 16 pipelined",
        400_000,
        "/s",
        _median("hello-64x16", SINGLE, "rate"),
        at_least=True,
        places=0,
    ),
    Promise(
        "cost",
        "the same against the best peer",
        2,
        "×",
        _best_peer("hello-64x16", "rate", highest=True),
        at_least=True,
    ),
    *(
        Promise(
            "threads",
            f"CPU per request, 8 threads against single, {connections} connection"
            + ("s" if connections > 1 else ""),
            1.08,
            "×",
            _ratio(f"hello-{connections}", THREADING, SINGLE),
        )
        for connections in (1, 2, 64, 512)
    ),
    Promise(
        "sleepers",
        "requests/s, 32 threads, 32 connections, handler sleeps 10 ms",
        3_000,
        "/s",
        _median("sleep10ms-32", "poorhttp threading 32", "rate"),
        at_least=True,
        places=0,
    ),
    _neighbours(THREADING, "p99_us", "p99", 1),
    _neighbours(THREADING, "max_us", "worst", 5),
    _neighbours(GEVENT, "p99_us", "p99", 1),
    _neighbours(GEVENT, "max_us", "worst", 5),
    *(
        Promise(
            "gevent",
            f"requests/s of gevent mode, 64 connections, against {against}",
            3,
            "×",
            _ratio("hello-64", GEVENT, against, "rate"),
            at_least=True,
        )
        for against in ("gevent pywsgi", "gunicorn gevent")
    ),
    Promise(
        "forking",
        "requests/s, forking with 2 workers against 1, unpinned, handler computes about 1 ms",
        1.8,
        "×",
        _ratio("burn-16", "poorhttp forking 2", "poorhttp forking 1", "rate"),
        at_least=True,
    ),
    _pss(SINGLE, "single", 10),
    _pss("poorhttp forking 4", "forking, 4 workers, all processes", 16),
    *(
        Promise(
            "idle",
            f"memory of each of 10,000 idle keep-alive connections, {_mode(server)}",
            1024,
            "B",
            _figure("idle", server, "bytes per connection"),
            places=0,
        )
        for server in (SINGLE, THREADING)
    ),
    *(
        Promise(
            "start",
            f"from start to first answer, {_mode(server)}",
            150,
            "ms",
            _figure("start", server, "seconds", 1e3),
            places=0,
        )
        for server in (SINGLE, THREADING)
    ),
)
