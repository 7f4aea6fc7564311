"""A client in C that sends given requests, as fast as they are answered or at a rate."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from hdrh.histogram import HdrHistogram

from loadtests.clients.connection import request_bytes
from loadtests.clients.load import Load
from loadtests.clients.native import compiled
from loadtests.clients.program import run
from loadtests.measure import histogram
from loadtests.network.port import LOOPBACK

SOURCE = Path(__file__).with_name("replay.c")
LONG_PATIENCE = 30.0
"""Seconds that it waits for answers to what was sent at recorded times; as in the source."""


@dataclass(frozen=True)
class Request:
    """A request to send. A recorded `status` is right besides 2xx and 3xx; 0: none is."""

    target: str = "/"
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    status: int = 0

    def headed(self, headers: Sequence[tuple[str, str]]) -> Request:
        """The same with these header fields, in place of its own of their names."""
        names = {name.lower() for name, _ in headers}
        kept = (one for one in self.headers if one[0].lower() not in names)
        return replace(self, headers=(*kept, *headers))

    def hosted(self, host: str) -> Request:
        """The same, for this host unless it has another."""
        if any(name.lower() == "host" for name, _ in self.headers):
            return self
        return replace(self, headers=(("Host", host), *self.headers))

    def octets(self) -> bytes:
        return request_bytes(self.target, self.headers, self.body, self.method)


class Outcome(NamedTuple):
    """What became of a request: when it was due and what it took, in microseconds; 1 if `right`.

    `number` is its place among the requests, `what` its status, or which of KINDS has failed.
    """

    due: int
    took: int
    right: int
    number: int = 0
    what: int = 0


def step(link: str, answered: int, failed: int, times: HdrHistogram) -> dict[str, Any]:
    """What became of a part of the requests, as results have it."""
    encoded = histogram.encode(times)
    return {"link": link, "answered": answered, "failed": failed, "times": encoded}


@dataclass(frozen=True)
class Seen:
    """Result of a run: the requests that count, their times, and how many were answered in all."""

    load: Load
    times: HdrHistogram
    answered: int
    outcomes: Sequence[Outcome] = ()


def drive(
    port: int,
    seconds: float,
    connections: int,
    requests: Sequence[Request],
    *,
    rate: float = 0,
    seed: int = 1,
    warm: float = 0,
    moments: Sequence[float] = (),
    outcomes: bool = False,
    host: str = LOOPBACK,
    core: int | None = None,
) -> Seen:
    """Sends the requests in their order, again from the first, for `warm` and then `seconds`.

    With a `rate` so many a second are due, at random times, and times count from then; otherwise
    each connection sends as soon as it has its answer. What is sent while it warms up does not
    count. With `moments`, seconds from the beginning for each, a request is due once, then. What
    became of each request is told with `moments` or `outcomes`. `host` is an IPv4 address. Runs on
    `core`, or anywhere if that is None.
    """
    with tempfile.TemporaryDirectory(prefix="loadtests-") as folder:
        asked, counts = Path(folder, "requests"), Path(folder, "counts")
        told, outcomes = Path(folder, "outcomes"), outcomes or bool(moments)
        with asked.open("wb") as file:
            for request, moment in zip_longest(requests, moments, fillvalue=0.0):
                assert isinstance(request, Request)
                octets, headless = request.octets(), int(request.method == "HEAD")
                line = b"%d %d %d %d\n%b"
                file.write(line % (len(octets), headless, request.status, moment * 1e6, octets))
        command = [str(compiled.program(SOURCE)), host, str(port), str(connections), f"{warm:g}"]
        command += [f"{seconds:f}", f"{-1 if moments else rate:g}"]
        command += [str(seed), str(asked), str(counts), *([str(told)] if outcomes else [])]
        # At recorded times it waits for what was sent, which its end by force is not to cut off.
        load = run(command, warm + seconds + (LONG_PATIENCE if moments else 0), core)
        answered, *times = counts.read_text(encoding="ascii").splitlines()
        rows = [line.split() for line in times]
        counted = histogram.record((int(time) for time, _ in rows), (int(n) for _, n in rows))
        seen = Seen(load, counted, int(answered))
        if outcomes:
            lines = told.read_text(encoding="ascii").splitlines()
            seen = replace(seen, outcomes=[Outcome(*map(int, one.split())) for one in lines])
        return seen
