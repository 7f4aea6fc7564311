"""Loads of h2load: what is asked for, over how many connections and streams."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from loadtests.clients import external
from loadtests.clients.load import Job, Load
from loadtests.servers.application import Application
from loadtests.studies.bench.scenarios import HELLO, Scenario

COUNTED = Application("loadtests/apps", "counted")
PAGE, LARGE = "/page.html", "/large.bin"
POSTED = bytes(1_000_000)
KINDS = {
    "hello": "13-byte answer",
    "page": "file of 1.5 KB",
    "large": "file of 10 MB",
    "post": "POST of 1 MB",
}
FILES = ("page", "large")
CONNECTIONS, STREAMS = (1, 16), (1, 10, 100)
PLAIN, TLS = "h2c", "TLS"
PER_SECOND = 100
"""Large files and bodies for each second of a sample; and at least one on each stream."""
ONE_AT_A_TIME = "hello-h1-16x1"
"""The scenario of HTTP/1.1."""


@dataclass(frozen=True)
class Streams(Scenario):
    """A scenario of h2load: so many streams at once on each connection; 0 is HTTP/1.1."""

    streams: int = 0
    secure: bool = False

    @property
    def name(self) -> str:
        """Its kind, connections and streams; see `name_of`."""
        return self.kind

    def drive(self, port: int, seconds: float, core: int | None) -> Load:
        job = Job(port, seconds, self.connections, self.target, body=self.body)
        url = job.url.replace("http:", "https:") if self.secure else job.url
        # A stream's window like a browser's: the default of h2load is that of the RFC.
        options = ["-m", str(self.streams), "-w", "20", "-W", "24"] if self.streams else ["--h1"]
        # Many that have begun when the time is over would be costs without an answer.
        is_long = self.target == LARGE or self.body
        at_least = max(self.connections * self.streams, round(PER_SECOND * seconds))
        return external.h2load_with(job, core, options, url, at_least if is_long else 0)


def scenarios(static: Application) -> Iterator[Streams]:
    """All, in the order of reports."""
    served = {"hello": HELLO, "page": static, "large": static, "post": COUNTED}
    targets = {"page": PAGE, "large": LARGE}
    shapes = itertools.product(KINDS.items(), (False, True), CONNECTIONS, STREAMS)
    for (kind, title), secure, connections, streams in shapes:
        yield Streams(
            name_of(kind, secure, connections, streams),
            *(title, served[kind], connections),
            target=targets.get(kind, "/"),
            body=POSTED if kind == "post" else b"",
            streams=streams,
            secure=secure,
        )
    yield Streams(ONE_AT_A_TIME, KINDS["hello"], HELLO, 16)


def name_of(kind: str, secure: bool, connections: int, streams: int) -> str:
    """The name of a scenario, as results have it."""
    return f"{kind}-{'tls' if secure else 'h2c'}-{connections}x{streams}"
