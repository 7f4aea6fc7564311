"""The study `webbench`: files of a workload at random; requests and bytes per second."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise

from loadtests.arguments import number
from loadtests.clients.native import fetch
from loadtests.clients.native.fetch import RIGHT, Trace
from loadtests.errors import ServerFailure
from loadtests.measure import histogram, resources
from loadtests.reporting.model import Axis, Cell, Column, Figure, Section, Table
from loadtests.servers.fixtures import Published
from loadtests.servers.registry import STATIC, Server
from loadtests.servers.running import Running
from loadtests.stats.results import Results
from loadtests.studies import originals, sample, tables
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.study import Scale, Study
from loadtests.studies.webbench import workload

NAME = "webbench"
OLD, NEW = "1.0", "1.1"
"""Versions of HTTP: a connection for each request, or kept ones."""
RAMP_SHARE = 0.1
"""Of the length, before and behind it: 30 of 300 s."""
FORKING = ("mini_httpd", "micro-httpd under xinetd", "busybox httpd")
"""Serve a request by a process that ends: what that costs is not known of those that stay."""
EACH = 1e6
"""Microseconds of a second."""


@dataclass(frozen=True)
class Settings:
    """How the client asks. Times in seconds, `receive` in bytes."""

    length: float
    ramp: float
    threads: int = 4
    think: float = 0.0
    receive: int = 8_192
    http: str = OLD


def arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    count = number(1, kind=int, problem="{text} is not 1 or more")
    told = f"default {Settings.threads}"
    add("--threads", type=count, default=Settings.threads, metavar="N", help=told)
    time = number(0, problem="{text} is not a time")
    told = f"between an answer and the next request; default {Settings.think:g}"
    add("--think", type=time, default=Settings.think, metavar="SECONDS", help=told)
    told = f"received at once; default {Settings.receive}"
    add("--buffer", type=count, default=Settings.receive, metavar="OCTETS", help=told)
    told = "before and behind what is counted; default a tenth of its length"
    add("--ramp", type=time, metavar="SECONDS", help=told)
    told = f"{OLD} connects for each request, {NEW} keeps its connections; default {OLD}"
    add("--http", choices=(OLD, NEW), default=OLD, help=told)


def settings(scale: Scale, options: Namespace) -> Settings:
    """Those of the command line; the length is that of the scale."""
    ramp = RAMP_SHARE * scale.seconds if options.ramp is None else options.ramp
    others = options.threads, options.think, options.buffer, options.http
    return Settings(scale.seconds, ramp, *others)


def plan(lab: Lab, scale: Scale, servers: Sequence[Server], options: Namespace) -> list[Step]:
    return sample.rounds(lab, servers, NAME, partial(_take, lab, settings(scale, options)))


def _take(lab: Lab, chosen: Settings, number: int, server: Server) -> str:
    files = Published(str(workload.folder()), type="image/gif")
    targets = workload.asked()
    with Running(server, files, target=targets[0], core=lab.server_core) as running:
        cpu = resources.cpu_seconds(running.processes())
        seen = fetch.traced(
            running.port,
            chosen.length + 2 * chosen.ramp,
            chosen.threads,
            [[target] for target in targets],
            keep=chosen.http == NEW,
            think=chosen.think,
            receive=chosen.receive,
            old=chosen.http == OLD,
            core=lab.client_core,
        )
        cpu = resources.cpu_seconds(running.processes()) - cpu
        said = running.last_words()
    trace = seen.trace
    up, counted, down = phases(trace, chosen)
    if not counted:
        raise ServerFailure(f"it answered no request in time: {said}")
    durations = [trace.ended[row] - trace.intended[row] for row in counted]
    times, longest = histogram.record(durations), float(max(durations))
    octets = sum(trace.octets[row] for row in counted)
    rate, octet_rate = len(counted) / chosen.length, octets / chosen.length
    ramp = chosen.ramp or float("inf")
    Trial(lab, NAME, number, server).sample(
        scenario=f"workload-{chosen.threads}",
        seed=workload.SEED,
        files=originals.FILES,
        file_octets=originals.OCTETS,
        **asdict(chosen),
        requests=len(counted),
        octets=octets,
        seconds=chosen.length,
        rate=round(rate, 2),
        octet_rate=round(octet_rate, 1),
        ramp_up_rate=round(len(up) / ramp, 2),
        ramp_down_rate=round(len(down) / ramp, 2),
        p50_us=histogram.quantile(times, 0.5, longest),
        p99_us=histogram.quantile(times, 0.99, longest),
        max_us=longest,
        times=histogram.encode(times),
        errors=seen.load.errors,
        client_busy=round(seen.load.busy, 3),
        **({} if server.name in FORKING else {"cpu_us": round(cpu / seen.load.requests * EACH, 2)}),
    )
    return f"{rate:9,.0f}/s  {octet_rate / 1e6:8,.1f} MB/s"


def phases(trace: Trace, chosen: Settings) -> list[list[int]]:
    """The answered requests of ramp up, of what is counted, and of ramp down, by their ends."""
    bounds = [0.0, chosen.ramp, chosen.ramp + chosen.length, chosen.length + 2 * chosen.ramp]
    return [
        [
            row
            for row in range(len(trace))
            if trace.kind[row] == RIGHT and begin * EACH <= trace.ended[row] < end * EACH
        ]
        for begin, end in pairwise(bounds)
    ]


RATE = "requests"
VALUES: Sequence[tuple[Column, tables.Value]] = (
    (Column(RATE, "/s"), "rate"),
    (Column("bytes", "MB/s", 2, 1e-6), "octet_rate"),
    (Column("median time of a request", "ms", 2, 1e-3), "p50_us"),
    (Column("p99 of that", "ms", 2, 1e-3), "p99_us"),
    (Column("server CPU per request", "µs", 1), "cpu_us"),
    (Column("requests while ramping up", "/s"), "ramp_up_rate"),
    (Column("requests while ramping down", "/s"), "ramp_down_rate"),
    (Column("client busy", "%", 0, 100), "client_busy"),
)
FIGURES = (
    ("rate", "Requests per second", "/s", 1.0),
    ("octet_rate", "Bytes per second", "MB/s", 1e-6),
)
TOLD = {
    "Ramp up, ramp down": "{ramp:g} s",
    "Length": "{length:g} s",
    "Delay, think time": "{think:g} s",
    "Threads": "{threads}",
    "Receive buffer": "{receive} bytes",
    "Request type": "HTTP {http}",
}
"""Settings by their names of 2001, as the table has them."""


def report(results: Results) -> list[Section]:
    """All of it; of what failed, that it failed."""
    samples = results.samples
    if not samples:
        return []
    old_mean = sum(map(sum, originals.THROUGHPUT)) / sum(map(sum, originals.RPS))
    text = [
        f"{originals.FILES:,} files of 64 MB ({originals.OCTETS:,} bytes) in all are asked "
        "for at random: how many requests and bytes per second does each server answer?",
        "WebBench's own distribution is not public. The classes are those of SPECweb96 up to 100 "
        "KB. Their probabilities are chosen so that a response has the mean length in the "
        "tables of the study: "
        f"{old_mean:,.0f} bytes, its bytes per second over its requests per second. Here a file "
        f"has {workload.mean_answer():,.0f} bytes on average over all requests; a head is added. "
        "Within a class every file is asked for equally often. Requests that failed are not "
        "counted.",
        *tables.saturated(samples),
        *tables.failed(samples),
        *tables.lost(results),
    ]
    figures: list[Figure] = [
        tables.bars(
            f"{NAME}-{field}",
            title,
            Axis(title.partition(" ")[0].lower(), unit, low=0.0),
            {title: tables.spreads(samples, field, scale)},
            highest=True,
        )
        for field, title, unit, scale in FIGURES
    ]
    figures += tables.percentiles(NAME, samples, "times")
    table = tables.compared(
        NAME,
        "Requests and bytes per second",
        samples,
        VALUES,
        RATE,
        highest=True,
        note="Times are from the beginning of a connection, or from the request on one that is "
        "kept, to the end of the answer. CPU is the server's, and is not known where it serves "
        "requests with processes that end.",
    )
    today = [
        (name, old, ", ".join(dict.fromkeys(TOLD[name].format(**one) for one in samples)))
        for name, old in originals.TABLES["2001 settings"]
    ]
    setup = Table(
        f"{NAME}-settings",
        "Settings of the client",
        [Column("setting"), Column("2001"), Column("here")],
        today,
        note="Threads are connections at once. With HTTP 1.0 each request has a connection of its "
        "own. Requests that end while the client ramps up or down are not counted.",
    )
    rates = tables.spreads(samples, "rate")
    said = tables.answer("Files of the workload per second", rates, "/s", highest=True)
    then = Section("What the study of 2001 had", [], [_old()])
    return [Section("Files of a workload", text, [*figures, table, _classes(), setup], said), then]


def _classes() -> Table:
    rows: list[list[Cell]] = []
    for kind, of_kind in workload.files().items():
        sizes = [float(size) for size in of_kind.values()]
        cells = (sum(sizes), min(sizes), max(sizes), kind.probability)
        rows.append([kind.name, float(len(sizes)), *cells])
    rows.append(["all", float(originals.FILES), float(originals.OCTETS), None, None, 1.0])
    return Table(
        f"{NAME}-classes",
        "The workload",
        [
            Column("class"),
            Column("files"),
            *(Column(name, "bytes") for name in ("together", "smallest", "largest")),
            Column("probability", "%", 0, 100),
        ],
        rows,
        note="Sizes are drawn evenly over their logarithms; seeds are stored with the results.",
    )


def _old() -> Table:
    columns = [Column("server")]
    values: list[Sequence[Cell]] = [originals.SERVERS]
    for client, *own in zip(originals.CLIENTS, originals.RPS, originals.THROUGHPUT, strict=True):
        columns += [
            Column(f"{client}, RPS", places=2),
            Column(f"{client}, throughput", "kB/s", 1, 1e-3),
        ]
        values += own
    return Table(
        f"{NAME}-2001",
        "Requests and bytes per second of Apache 1.3 on four machines",
        columns,
        [*zip(*values, strict=True)],
        note="Server 1: 25 MHz 68040; 2: 90 MHz Pentium; 3: 233 MHz Alpha; 4: 180 MHz Pentium Pro. "
        "Client 1: 466 MHz Celeron, Windows 95; 2: 150 MHz Pentium, Windows 98.",
    )


STUDY = Study(
    NAME,
    "6,471 files of 64 MB at random: requests and bytes per second",
    "the study of the client's influence, 2001",
    lambda: STATIC,
    plan,
    report,
    arguments,
)
