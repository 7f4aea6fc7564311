"""Streams of server-sent events, and what they do to a client that asks for something else."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loadtests.clients.client_process import YIELDING, ClientProcess
from loadtests.clients.native.fetch import RIGHT
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.reporting.model import Cell, Column, Section
from loadtests.reporting.promises import Promise, mode
from loadtests.servers.application import Application
from loadtests.servers.registry import Server
from loadtests.servers.running import Running
from loadtests.stats.results import Results, Spread, spread
from loadtests.store import Record
from loadtests.studies import comparison, sample, tables
from loadtests.studies.engine import Lab, Step, Trial, in_turns

NAME = "events"
STREAMING = Application("loadtests/apps", "events")
STREAMS = 200
EVERY = 1.0
"""Mean number of seconds between two events of a stream; at most half as many more."""
WAYS = {"http/1.1": f"over {STREAMS} connections of HTTP/1.1", "h2c": "over one of HTTP/2"}
"""The words for how the streams come, by the protocol of their client."""
RATE = 500
"""Requests of the other client each second."""
PATIENCE = 2.0
"""Seconds after which it gives up."""
PARTS = 4
"""Seconds of a measurement for each second of a sample."""
STARVED = 3.0
"""Seconds without a further stream that begins, after which no more are expected."""
SETTLING = 2.0
"""Seconds from then to the measurement: ours takes one to give a stream a thread of its own."""
LIMIT = 1.2
"""Most of p99 beside the streams, of that without them."""


@dataclass(frozen=True)
class Streaming(Trial):
    """Streams that come by this `protocol`."""

    protocol: str = ""

    def run(self) -> str:
        """Measures a client without the streams, and then beside them."""
        with self.running(STREAMING) as running:
            sample.warm(running, "/", self.lab.client_core)
            alone = self._light(running)
            before = resources.memory(running.processes()).pss
            arguments = [str(running.port), f"/events?{EVERY:g}", str(STREAMS), self.protocol]
            module, core = "loadtests.clients.event_streams", self.lab.client_core
            with ClientProcess("streams", module, arguments, core, YIELDING) as streams:
                self._begin(streams)
                beside = self._light(running)
                found = streams.ask("state")
                memory = resources.memory(running.processes()).pss - before
        if not found["begun"]:
            raise ServerFailure("no stream has got an event")
        self.sample(
            scenario=self.protocol,
            streams=STREAMS,
            memory=memory / STREAMS,
            begun_s=round(found["begun_after"], 3),
            event_p99_us=found["p99_us"],
            **{name: found[name] for name in ("begun", "heard", "ended", "events")},
            **{f"alone_{name}": value for name, value in alone.items()},
            **beside,
        )
        p99 = f"p99 {beside['p99_us'] / 1e3:.2f} ms, {alone['p99_us'] / 1e3:.2f} ms without"
        return f"{found['heard']} of {STREAMS} streams get events, {p99}"

    def _begin(self, streams: ClientProcess) -> None:
        """Waits until all streams have begun, or no more of them do, and a moment longer."""
        begun, since = 0, time.monotonic()
        while begun < STREAMS and time.monotonic() - since < STARVED:
            time.sleep(0.1)
            if (now := streams.ask("state")["begun"]) > begun:
                begun, since = now, time.monotonic()
        time.sleep(SETTLING)
        streams.ask("state")

    def _light(self, running: Running) -> dict[str, Any]:
        """Times of a client that asks at a fixed rate, and what the server does meanwhile.

        A request without an answer has taken as long as the client waits.
        """
        # In which each stream has an event.
        seconds = max(PARTS * self.lab.seconds, 2 * EVERY)
        traced, cpu = sample.offer(self.lab, running, seconds, RATE, PATIENCE, "/")
        trace = traced.trace
        times = sorted(
            min(ended - intended, round(PATIENCE * 1e6)) if kind == RIGHT else PATIENCE * 1e6
            for intended, ended, kind in zip(trace.intended, trace.ended, trace.kind, strict=True)
        )
        last = len(times) - 1
        return {
            "p50_us": times[last // 2],
            "p99_us": times[last * 99 // 100],
            "answered": trace.kind.count(RIGHT) / len(times),
            "busy": cpu / trace.seconds,
        }


def steps(lab: Lab, servers: Sequence[Server]) -> list[Step]:
    """Each server once a round by each protocol."""
    return [
        Streaming(lab, NAME, number, server, protocol).step(Streaming.run, f" by {protocol}")
        for number, server in in_turns(lab, servers)
        for protocol in WAYS
    ]


def promises(servers: Sequence[str]) -> list[Promise]:
    def value(results: Results, protocol: str, server: str) -> Spread | None:
        alone = results.rounds(protocol, server, "alone_p99_us")
        beside = results.rounds(protocol, server, "p99_us")
        return spread(value / alone[key] for key, value in beside.items())

    places = {
        f"{words}, {mode(server)}": (protocol, server)
        for protocol, words in WAYS.items()
        for server in servers
    }
    what = f"p99 of a client beside {STREAMS} event streams, of that without"
    return [Promise(NAME, what, LIMIT, "×", comparison.places(value, places))]


COLUMNS = {
    "alone_p50_us": Column("p50 without streams", "ms", 2, 1e-3),
    "p50_us": Column("p50", "ms", 2, 1e-3),
    "alone_p99_us": Column("p99 without streams", "ms", 2, 1e-3),
    "p99_us": Column("p99", "ms", 2, 1e-3),
    "answered": Column("answered", "%", 0, 100),
    "heard": Column("streams with events"),
    "begun_s": Column("the last began after", "s", 1),
    "event_p99_us": Column("p99 of an event", "ms", 2, 1e-3),
    "memory": Column("memory of a stream", "KiB", 0, 1 / 1024),
    "alone_busy": Column("CPU without streams", "%", 1, 100),
    "busy": Column("CPU", "%", 1, 100),
}
"""The columns of a table, by fields of samples."""
OF_ALL = "memory", "begun_s"
"""Fields that tell nothing where not all streams get events."""
RANGED = "alone_p99_us", "p99_us"
"""Fields that are shown with the lowest and the highest of the rounds."""


def report(results: Results) -> list[Section]:
    """A table for each way of the streams, the least p99 first."""
    sections = []
    measured = tables.by(results.experiment(NAME).samples, "scenario")
    for protocol, words in WAYS.items():
        own = tables.by_server(samples := measured.get(protocol, []))
        names = tables.ranked(tables.spreads(samples, "p99_us"), own)
        if names:
            name = f"http2-events-{protocol.partition('/')[0]}"
            rows = [_row(server, own[server]) for server in names]
            table = tables.table(name, "", ["server", *COLUMNS.values()], rows)
            sections.append(Section(f"{STREAMS} event streams {words}", parts=[table]))
    return sections


def _row(server: str, samples: Sequence[Record]) -> list[Cell]:
    cells: list[Cell] = [server]
    is_whole = all(one["heard"] == one["streams"] for one in samples)
    for name in COLUMNS:
        found = spread(one[name] for one in samples if is_whole or name not in OF_ALL)
        cells.append(found if found is None or name in RANGED else found.median)
    return cells
