"""The promised figures, and how each is read from the results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loadtests.stats.results import Results, Spread

SINGLE = "poorhttp single"
LOGGED = "poorhttp single + log"
THREADING = "poorhttp threading 8"
GEVENT = "poorhttp gevent"
CPU = "cpu_us"


@dataclass(frozen=True)
class Target:
    """`limit` is the highest value allowed, or the lowest if `at_least`; `places` are decimals."""

    experiment: str
    what: str
    limit: float
    unit: str
    read: Callable[[Results], Spread | None]
    at_least: bool = False
    places: int = 2
    against: Callable[[Results], str | None] = lambda _: None

    def met(self, value: float) -> bool:
        """Whether a median keeps the promise."""
        return value >= self.limit if self.at_least else value <= self.limit

    def show(self, value: float) -> str:
        """A value with the unit."""
        return f"{value:,.{self.places}f} {self.unit}"


def _mode(server: str) -> str:
    return server.removeprefix("poorhttp ")


def _scaled(found: Spread | None, factor: float) -> Spread | None:
    if found is None:
        return None
    return Spread(found.median * factor, found.low * factor, found.high * factor, found.rounds)


def _ratio(
    scenario: str, server: str, against: str, field: str = CPU
) -> Callable[[Results], Spread | None]:
    return lambda results: results.ratio(scenario, server, against, field)


def _floor(scenario: str, server: str, limit: float, words: str) -> Target:
    return Target(
        "cost",
        f"CPU per request, {words}, against the floor",
        limit,
        "×",
        _ratio(scenario, server, "floor"),
    )


def _peer(scenario: str, words: str) -> Target:
    def read(results: Results) -> Spread | None:
        best = results.best_peer(scenario, CPU)
        return results.ratio(scenario, SINGLE, best, CPU) if best else None

    return Target(
        "cost",
        f"CPU per request, {words}, against the best peer",
        0.90,
        "×",
        read,
        against=lambda results: results.best_peer(scenario, CPU),
    )


def _first_pipelined(results: Results) -> Spread | None:
    best = results.best_peer("hello-64x16", "rate", highest=True)
    return results.ratio("hello-64x16", SINGLE, best, "rate") if best else None


def _neighbours(server: str, field: str, words: str, limit: float) -> Target:
    return Target(
        "neighbours",
        f"beside a request that sleeps 1 s, {_mode(server)}: {words} of the others",
        limit,
        "ms",
        lambda results: _scaled(results.median("beside-4", server, field), 1e-3),
    )


def _gevent(against: str) -> Target:
    return Target(
        "gevent",
        f"requests/s of gevent mode, 64 connections, against {against}",
        3,
        "×",
        _ratio("hello-64", GEVENT, against, "rate"),
        at_least=True,
    )


def _pss(server: str, words: str, limit: float) -> Target:
    return Target(
        "memory",
        f"PSS after 1,000 requests for `light`, {words}",
        limit,
        "MiB",
        lambda results: _scaled(results.figure("memory", server, "pss"), 2**-20),
        places=1,
    )


TARGETS = (
    _floor("hello-64", SINGLE, 1.20, "64 connections"),
    _floor("hello-512", SINGLE, 1.20, "512 connections"),
    _floor("hello-64", LOGGED, 1.25, "64 connections, access log on"),
    _floor("hello-512", LOGGED, 1.25, "512 connections, access log on"),
    _peer("hello-1", "1 connection"),
    _peer("hello-64", "64 connections"),
    _peer("hello-512", "512 connections"),
    _peer("browser-64", "64 connections, 12 request headers"),
    Target(
        "cost",
        "requests/s, 64 connections × 16 pipelined",
        400_000,
        "/s",
        lambda results: results.median("hello-64x16", SINGLE, "rate"),
        at_least=True,
        places=0,
    ),
    Target(
        "cost",
        "the same against the best peer",
        2,
        "×",
        _first_pipelined,
        at_least=True,
        against=lambda results: results.best_peer("hello-64x16", "rate", highest=True),
    ),
    *(
        Target(
            "threads",
            f"CPU per request, 8 threads against single, {connections} connection"
            + ("s" if connections > 1 else ""),
            1.08,
            "×",
            _ratio(f"hello-{connections}", THREADING, SINGLE),
        )
        for connections in (1, 2, 64, 512)
    ),
    Target(
        "sleepers",
        "requests/s, 32 threads, 32 connections, handler sleeps 10 ms",
        3_000,
        "/s",
        lambda results: results.median("sleep10ms-32", "poorhttp threading 32", "rate"),
        at_least=True,
        places=0,
    ),
    _neighbours(THREADING, "p99_us", "p99", 1),
    _neighbours(THREADING, "max_us", "worst", 5),
    _neighbours(GEVENT, "p99_us", "p99", 1),
    _neighbours(GEVENT, "max_us", "worst", 5),
    _gevent("gevent pywsgi"),
    _gevent("gunicorn gevent"),
    Target(
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
        Target(
            "idle",
            f"memory of each of 10,000 idle keep-alive connections, {_mode(server)}",
            1024,
            "B",
            lambda results, server=server: results.figure("idle", server, "bytes per connection"),  # type: ignore[misc]
            places=0,
        )
        for server in (SINGLE, THREADING)
    ),
    *(
        Target(
            "start",
            f"from start to first answer, {_mode(server)}",
            150,
            "ms",
            lambda results, server=server: _scaled(results.figure("start", server, "seconds"), 1e3),  # type: ignore[misc]
            places=0,
        )
        for server in (SINGLE, THREADING)
    ),
)


def table(results: Results) -> list[str]:
    """Promised beside measured as a Markdown table; only what was measured."""
    lines = ["| what | promised | measured (lowest – highest) | kept |", "|---|--:|--:|---|"]
    for target in TARGETS:
        found = target.read(results)
        if found is None:
            continue
        sign = "≥" if target.at_least else "≤"
        what = target.what
        against = target.against(results)
        if against:
            what += f" ({against})"
        if target.met(found.median):
            kept = "yes"
        else:
            kept = f"**no**, by {abs(found.median / target.limit - 1) * 100:.0f} %"
        lines.append(
            f"| {what} | {sign} {target.limit:,g} {target.unit} | {target.show(found.median)} "
            f"({found.low:,.{target.places}f} – {found.high:,.{target.places}f}) | {kept} |"
        )
    return lines
