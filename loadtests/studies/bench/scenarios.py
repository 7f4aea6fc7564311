"""Scenarios of every comparison: number of connections, request, expected response."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from loadtests.arguments import unknown
from loadtests.clients import external
from loadtests.clients.connection import request_bytes
from loadtests.clients.load import Job, Load
from loadtests.clients.native import fetch
from loadtests.servers.application import Application
from loadtests.servers.registry import Server

HELLO = Application("apps/hello", "app")
PAGE = Application("apps/page", "app")
SLOW = Application("apps/slow", "app")
LIGHT = Application("apps/lightheavy", "bare", "light", dated=True)
ECHO = Application("loadtests/apps", "echo")
BURN = Application("loadtests/apps", "burn")
DOCUMENTS = Application("loadtests/apps", "documents")

# With Host these are twelve, the set and the lengths that a current Chromium sends.
BROWSER_HEADERS = (
    ("Connection", "keep-alive"),
    ("Cache-Control", "max-age=0"),
    ("sec-ch-ua", '"Chromium";v="130", "Not?A_Brand";v="99"'),
    ("sec-ch-ua-mobile", "?0"),
    ("sec-ch-ua-platform", '"Linux"'),
    ("Upgrade-Insecure-Requests", "1"),
    (
        "User-Agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Chrome/130.0.0.0 Safari/537.36",
    ),
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"),
    ("Accept-Encoding", "gzip, deflate, br, zstd"),
    ("Accept-Language", "cs-CZ,cs;q=0.9,en;q=0.8"),
    ("Cookie", "session=1f0c6a8e5d2b4739; theme=dark"),
)
LONGEST = 60.0
"""Seconds for a number of requests."""
POSTED = b"".join(b"%015d\n" % line for line in range(64))


@dataclass(frozen=True)
class Scenario:
    """`depth` requests are sent at once on each of `connections`; a `body` makes it a POST.

    `compared` scenarios make up the benchmark; the others belong to single experiments.
    """

    kind: str
    title: str
    application: Application
    connections: int
    depth: int = 1
    target: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    compared: bool = True

    @property
    def name(self) -> str:
        """As on the command line: kind, connections and, if pipelined, the depth."""
        return f"{self.kind}-{self.connections}" + (f"x{self.depth}" if self.depth > 1 else "")

    @property
    def load(self) -> str:
        """The connections in words."""
        connections = f"{self.connections} connection" + ("s" if self.connections > 1 else "")
        return connections + (f" × {self.depth} pipelined" if self.depth > 1 else "")

    def request(self) -> bytes:
        """The request as sent by our own client."""
        return request_bytes(self.target, self.headers, self.body)

    def drive(self, port: int, seconds: float, core: int | None) -> Load:
        """Loads the server on `port`, from that core or from anywhere."""
        job = Job(port, seconds, self.connections, self.target)
        job = replace(job, depth=self.depth, headers=self.headers, body=self.body)
        return external.wrk(job, core)


@dataclass(frozen=True)
class Fetched(Scenario):
    """A scenario of our client in C: `visits`, or else the target again and again.

    A visit is what is asked for one after the other on a connection, with `keep` on that of the
    visit before. With a number of `requests` it ends when all are answered, after LONGEST at most;
    with `every` it begins so many visits as there are connections whenever that time has passed.
    """

    visits: tuple[tuple[str, ...], ...] = ()
    keep: bool = True
    requests: int = 0
    every: float = 0

    def drive(self, port: int, seconds: float, core: int | None) -> Load:
        """Makes visits; with `every` no less than one burst with the time until the next."""
        if self.every:
            seconds = math.ceil(seconds / self.every) * self.every
        return fetch.drive(
            port,
            LONGEST if self.requests else seconds,
            self.connections,
            self.visits or [[self.target]],
            requests=self.requests,
            keep=self.keep,
            every=self.every,
            core=core,
        )


KINDS = (
    Scenario("hello", "13-byte answer", HELLO, 1),
    Scenario("page", "10 KB answer", PAGE, 1),
    Scenario(
        "browser", "13-byte answer to a browser's 12 headers", HELLO, 1, headers=BROWSER_HEADERS
    ),
    Scenario("echo", "POST of 1 KB, sent back", ECHO, 1, body=POSTED),
)
LOADS = ((1, 1), (64, 1), (512, 1), (64, 16))
SIZED = tuple(
    Scenario(
        f"document{size}", f"{size:,}-byte answer", DOCUMENTS, 64, target=f"/{size}", compared=False
    )
    for size in (128, 512, 1024)
)
SCENARIOS = (
    *(
        replace(kind, connections=connections, depth=depth)
        for connections, depth in LOADS
        for kind in KINDS
    ),
    *SIZED,
    Scenario("hello", "13-byte answer", HELLO, 2, compared=False),
    Scenario(
        "sleep10ms", "handler sleeps 10 ms", SLOW, 32, target="/?seconds=0.01", compared=False
    ),
    Scenario("beside", "beside a sleeper", SLOW, 4, target="/?seconds=0", compared=False),
    Scenario("burn", "handler computes about 1 ms", BURN, 16, compared=False),
)
QUICK = ("hello-1", "hello-64", "browser-64", "hello-64x16")


def named(names: Iterable[str]) -> list[Scenario]:
    """The scenarios of these names; a kind stands for all compared ones of that kind.

    Raises LabError for a name that fits none.
    """
    chosen: list[Scenario] = []
    for name in names:
        fitting = [
            one for one in SCENARIOS if one.name == name or (one.compared and one.kind == name)
        ]
        if not fitting:
            raise unknown("scenario", name, [one.name for one in SCENARIOS], ", ")
        chosen += [one for one in fitting if one not in chosen]
    return chosen


def asked(servers: Iterable[Server], names: Iterable[str]) -> list[dict[Server, Scenario]]:
    """What each server is asked in the scenarios of these names."""
    return [dict.fromkeys(servers, scenario) for scenario in named(names)]


def heading(name: str) -> str:
    """What a scenario is called on the page."""
    scenario = next((one for one in SCENARIOS if one.name == name), None)
    return f"{scenario.title}, {scenario.load}" if scenario else name
