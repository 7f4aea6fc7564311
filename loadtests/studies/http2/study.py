"""The study `http2`: requests on streams, memory, attacks and event streams."""

from __future__ import annotations

import itertools
from argparse import Namespace
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

from loadtests.clients import external
from loadtests.clients.load import Job, Load
from loadtests.clients.registry import CLIENTS
from loadtests.errors import LabError
from loadtests.reporting.model import Column, Section, method
from loadtests.reporting.promises import Places, Promise, mode, of_figures
from loadtests.servers.application import Application
from loadtests.servers.certificate import certificate
from loadtests.servers.fixtures import Fixtures
from loadtests.servers.registry import Server
from loadtests.servers.registry.wire import EVENTS, HTTP2, http2
from loadtests.stats.results import Results
from loadtests.studies import comparison, engine, tables
from loadtests.studies.bench.scenarios import HELLO, Scenario
from loadtests.studies.comparison import CPU, PSS, RATE, REMARKS
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.http2 import attacks, events, memory
from loadtests.studies.study import FULL, QUICK, TINY, Scale, Study, scales

NAME = "http2"
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
REQUESTS, MEMORY, ATTACKS = "requests", "memory", attacks.NAME
EXPERIMENTS = REQUESTS, MEMORY, ATTACKS, events.NAME
MEDIUM = Scale("medium", 0, 0.6, each={MEMORY: 2, events.NAME: 2})
"""What the page in docs/ shows: twelve minutes."""
ALL = CONNECTIONS, STREAMS
MODES = tuple(one.name for one in HTTP2 if one.ours)
SCALES = scales(
    *(FULL, MEDIUM, QUICK, TINY),
    # The numbers of connections and streams.
    grid=(ALL, (CONNECTIONS[-1:], STREAMS[1:2]), ALL, (CONNECTIONS[:1], STREAMS[:1])),
    attacked=(MODES, ("poorhttp threading", "poorhttp gevent"), MODES, MODES),
)
MEASURED = [one.name for one in HTTP2 if one.ours or one.name == "granian"]
"""Those whose memory is measured: connections to gunicorn time out in that experiment."""
OURS = {name: mode(name) for name in MODES}
AGAINST_GRANIAN, AGAINST_NGINX, AGAINST_H1 = 0.6, 1.0, 1.0
"""CPU time of ours against that of others, and against that of HTTP/1.1."""
KIB = 1 / 1024


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
    served = {"hello": HELLO, "page": static, "large": static, "post": memory.COUNTED}
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


def measure(trial: Trial, scenario: Streams) -> str:
    """Starts a server, checks its answer by HTTP/1.1, loads it by HTTP/2 and stops it."""
    with trial.started(scenario) as running:
        if scenario.streams and any("$first" in text for _, text in trial.server.files):
            running.port = running.first
        sample = trial.take(scenario, running)
    return f"{sample['cpu_us']:8.2f} µs  {sample['rate']:9,.0f}/s"


def plan(lab: Lab, scale: Scale, chosen: Sequence[Server], options: Namespace) -> list[Step]:
    """The steps of the experiments that were chosen, servers in turns in each."""
    names = {one.name for one in chosen}
    programs = [one for one in http2(files=False, secure=False) if one.name in names]
    planned: list[Step] = []
    for name in options.names:
        own = replace(lab, rounds=scale.rounds_of(name))
        if name == REQUESTS:
            planned += _requests(own, scale, names)
        elif name == MEMORY:
            known = [one for one in programs if one.name in MEASURED]
            planned += engine.rounds(own, name, known, memory.take)
        elif name == ATTACKS:
            known = [one for one in programs if one.name in scale.amounts.attacked]
            planned += engine.rounds(own, name, known, attacks.take)
        else:
            planned += events.steps(own, [one for one in EVENTS if one.name in names])
    return planned


def _requests(lab: Lab, scale: Scale, names: Container[str]) -> list[Step]:
    """Each scenario of the scale on all servers of these names that have it."""
    [client] = [one for one in CLIENTS if one.name == "h2load"]
    if reason := client.missing():
        raise LabError(reason)
    fixtures = lab.fixtures.enter_context(Fixtures())
    files = tuple(certificate().items())
    connections, streams = scale.amounts.grid
    asked: list[dict[Server, Streams]] = []
    for scenario in scenarios(fixtures.static):
        if scenario.streams and (
            scenario.connections not in connections or scenario.streams not in streams
        ):
            continue
        of_files = scenario.application is fixtures.static
        known = http2(files=of_files, secure=scenario.secure)
        taken = [one for one in known if one.name in names]
        if scenario.secure:
            taken = [replace(one, files=(*one.files, *files)) for one in taken]
        asked.append(dict.fromkeys(taken, scenario))
    return engine.steps(lab, asked, REQUESTS, measure)


def _scenarios(kind: str, secure: bool) -> dict[str, str]:
    """The words for the scenarios of a kind."""
    return {
        name_of(kind, secure, connections, streams): f"{connections} × {streams}"
        for connections in CONNECTIONS
        for streams in STREAMS
    }


def _against(other: str, kinds: Sequence[str], limit: float) -> list[Promise]:
    """CPU time of ours against that of another server, within each round."""
    return [
        Promise(
            REQUESTS,
            f"CPU per request, {KINDS[kind]}, {TLS if secure else PLAIN}, of {other}",
            limit,
            "×",
            comparison.places(
                Results.ratio,
                {
                    f"{words}, {mode(server)}": (name, server, other, "cpu_us")
                    for name, words in _scenarios(kind, secure).items()
                    for server in OURS
                },
            ),
        )
        for kind in kinds
        for secure in (False, True)
    ]


def _against_h1(results: Results) -> Places:
    """CPU time of ten streams on 16 connections against that of one request at a time on them."""
    name, places = name_of("hello", False, 16, 10), {}
    for server in OURS:
        streams = results.median(name, server, "cpu_us")
        single = results.median(ONE_AT_A_TIME, server, "cpu_us")
        if streams and single:
            places[mode(server)] = tables.scaled(streams, 1 / single.median)
    return places


def report(results: Results) -> list[Section]:
    """A section for each kind of request, with and without TLS, and the memory."""
    told, words = [], {ONE_AT_A_TIME: f"{KINDS['hello']}, HTTP/1.1, 16 connections"}
    for (kind, title), secure in itertools.product(KINDS.items(), (False, True)):
        known = _scenarios(kind, secure)
        name = f"{NAME}-{kind}-{'tls' if secure else 'h2c'}"
        head = f"{title[:1].upper()}{title[1:]}, {TLS if secure else PLAIN}"
        words |= {one: f"{head}, {shape}" for one, shape in known.items()}
        told += comparison.sections(results, (name, head, known, (CPU,)), limits=True)
    title = "The same by HTTP/1.1: 13-byte answer on 16 connections, one request at a time"
    told += comparison.sections(results, (f"{NAME}-h1", title, {ONE_AT_A_TIME: ""}, (CPU, RATE)))
    told += _memory(results)
    told += attacks.report(results, list(OURS))
    told += events.report(results)
    pause = attacks.PAUSE * 1e3
    how = method(__file__, memory=memory, attacks=attacks, events=events, pause=pause)
    measures = (CPU.with_range(), RATE.with_range(), PSS, REMARKS)
    return told + comparison.ending(results, NAME, words, measures, how)


def _memory(results: Results) -> list[Section]:
    """What idle connections and open streams take."""
    rows = [
        [one.name, *found]
        for one in HTTP2
        if any(found := [results.figure(MEMORY, one.name, n) for n in ("connection", "streams")])
    ]
    if not rows:
        return []
    columns = (
        "server",
        Column("idle connection", "KiB", 1, KIB),
        Column(f"{memory.STREAMS} streams that wait for content", "KiB", 0, KIB),
    )
    return [Section("Memory", parts=[tables.table(f"{NAME}-memory", "", columns, rows)])]


STUDY = Study(
    NAME,
    "requests on streams of HTTP/2, and what connections and streams take",
    "",
    lambda: list({one.name: one for one in (*EVENTS, *HTTP2)}.values()),
    plan,
    report,
    promises=(
        *_against("granian", tuple(KINDS), AGAINST_GRANIAN),
        *_against("nginx", FILES, AGAINST_NGINX),
        Promise(
            REQUESTS,
            "CPU per request, 16 × 10 streams, of HTTP/1.1 on 16 connections",
            AGAINST_H1,
            "×",
            _against_h1,
        ),
        of_figures(MEMORY, "idle connection", 8, "KiB", OURS, ["connection"], scale=KIB, places=1),
        of_figures(
            *(MEMORY, f"{memory.STREAMS} streams that wait for content", 200, "KiB"),
            *(OURS, ["streams"]),
            scale=KIB,
            places=0,
        ),
        *attacks.promises(list(OURS)),
        *events.promises(list(OURS)),
    ),
    experiments=EXPERIMENTS,
    scales=SCALES,
)
