"""The study `webbench`: files of a workload at random; requests and bytes per second.

There are 6,471 files of 64 MB in all. How WebBench distributed sizes and requests is not public.
Here are the classes of SPECweb96 (files below 1 KB, below 10 KB, below 100 KB:
https://www.spec.org/osg/web96/workload.html), with as many files of each as make up 64 MB, and with
probabilities that give what the study of 2001 saw: 6.2 KB for an answer with its head (its bytes
per second over its requests per second). That leaves no room for the fourth class, of up to 1 MB.
"""

from __future__ import annotations

import os
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean
from typing import NamedTuple

from loadtests.arguments import number
from loadtests.clients.native import fetch
from loadtests.clients.native.compiled import cache_folder
from loadtests.clients.native.fetch import RIGHT, Trace
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import histogram, resources
from loadtests.reporting.model import Axis, Cell, Column, Figure, Section, Table
from loadtests.servers.fixtures import Published
from loadtests.servers.registry import STATIC, Server
from loadtests.stats.results import Results
from loadtests.studies import originals, tables
from loadtests.studies.engine import Lab, Step, Trial, rounds
from loadtests.studies.originals import FILES, OCTETS
from loadtests.studies.study import Scale, Study

NAME = "webbench"
SEED = 2001
VERSION = 1
"""Of the files: another one, another folder."""
ASKED = 20_000
"""Requests that are drawn; after the last it begins again with the first."""
A_FOLDER = 100
"""Files in each."""


class Class(NamedTuple):
    """Files from `low` to below `high` bytes, evenly over the logarithms.

    `files` is the share of them in all files, `probability` that of a request to be for one.
    """

    name: str
    low: int
    high: int
    files: float
    probability: float


CLASSES = (
    Class("small", 102, 1_024, 0.30, 0.35),
    Class("medium", 1_024, 10_240, 0.49, 0.56),
    Class("large", 10_240, 102_400, 0.21, 0.09),
)


def files() -> dict[Class, dict[str, int]]:
    """The bytes of each file of a class, by its target; always the same."""
    random = Random(SEED)
    counts = [round(kind.files * FILES) for kind in CLASSES]
    counts[-1] = FILES - sum(counts[:-1])
    sizes = [
        [int(kind.low * (kind.high / kind.low) ** random.random()) for _ in range(count)]
        for kind, count in zip(CLASSES, counts, strict=True)
    ]
    sizes[-1] = _filled(sizes[-1], OCTETS - sum(map(sum, sizes[:-1])), CLASSES[-1])
    return {
        kind: {f"/{kind.name}{n // A_FOLDER}/{n}.gif": size for n, size in enumerate(of_kind)}
        for kind, of_kind in zip(CLASSES, sizes, strict=True)
    }


def _filled(sizes: Sequence[int], total: int, kind: Class) -> list[int]:
    """These sizes, each changed by as much of its way to a bound that they make up the total."""
    missing = total - sum(sizes)
    bound = kind.high - 1 if missing > 0 else kind.low
    share = missing / sum(bound - size for size in sizes)
    filled = [int(size + share * (bound - size)) for size in sizes]
    for place in range(total - sum(filled)):
        filled[place] += 1
    return filled


def asked() -> list[str]:
    """The targets of all requests, drawn by class; within a class all are as likely."""
    random = Random(SEED)
    targets = [list(of_kind) for of_kind in files().values()]
    drawn = random.choices(targets, [kind.probability for kind in CLASSES], k=ASKED)
    return [random.choice(of_kind) for of_kind in drawn]


def mean_answer() -> float:
    """Bytes of an answer, without its head, in the long run."""
    return sum(kind.probability * fmean(of.values()) for kind, of in files().items())


def folder() -> Path:
    """The folder with the files, made when first needed. Raises LabError if they have no room."""
    # Servers that give up root's rights cannot read below root's home.
    base = Path("/var/cache/poorhttp-loadtests") if os.geteuid() == 0 else cache_folder()
    ready = base / f"webbench-{VERSION}-{SEED}"
    if ready.is_dir():
        return ready
    try:
        base.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix="webbench-", dir=base, ignore_cleanup_errors=True
        ) as unfinished:
            top = Path(unfinished) / "files"
            top.mkdir()
            top.chmod(0o755)
            random = Random(SEED)
            for target, size in ((one, of[one]) for of in files().values() for one in of):
                path = top / target[1:]
                path.parent.mkdir(mode=0o755, exist_ok=True)
                path.write_bytes(random.randbytes(size))
            top.rename(ready)
    except OSError as error:
        # Another run may have been faster.
        if not ready.is_dir():
            raise LabError(f"the files of the workload: {base}: {error.strerror}") from None
    return ready


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
    add, default = parser.add_argument, Settings
    count = number(1, kind=int, problem="{text} is not 1 or more")
    told = f"default {default.threads}"
    add("--threads", type=count, default=default.threads, metavar="N", help=told)
    time = number(0, problem="{text} is not a time")
    told = f"between an answer and the next request; default {default.think:g}"
    add("--think", type=time, default=default.think, metavar="SECONDS", help=told)
    told = f"received at once; default {default.receive}"
    add("--buffer", type=count, default=default.receive, metavar="OCTETS", help=told)
    told = "before and behind what is counted; default a tenth of its length"
    add("--ramp", type=time, metavar="SECONDS", help=told)
    told = f"{OLD} connects for each request, {NEW} keeps its connections; default {OLD}"
    add("--http", choices=(OLD, NEW), default=OLD, help=told)


def plan(lab: Lab, scale: Scale, servers: Sequence[Server], options: Namespace) -> list[Step]:
    """The settings are those of the command line; the length is that of the scale."""
    ramp = RAMP_SHARE * scale.seconds if options.ramp is None else options.ramp
    others = options.threads, options.think, options.buffer, options.http
    chosen = Settings(scale.seconds, ramp, *others)
    return rounds(lab, NAME, servers, partial(_take, chosen=chosen))


def _take(trial: Trial, chosen: Settings) -> str:
    targets = asked()
    with trial.running(Published(str(folder()), type="image/gif"), targets[0]) as running:
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
            core=trial.lab.client_core,
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
    known = {} if trial.server.name in FORKING else {"cpu_us": cpu / seen.load.requests * EACH}
    trial.sample(
        scenario=f"workload-{chosen.threads}",
        seed=SEED,
        files=FILES,
        file_octets=OCTETS,
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
        **{name: round(value, 2) for name, value in known.items()},
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
        f"{FILES:,} files of 64 MB ({OCTETS:,} bytes) in all are asked "
        "for at random: how many requests and bytes per second does each server answer?",
        "WebBench's own distribution is not public. The classes are those of SPECweb96 up to 100 "
        "KB. Their probabilities are chosen so that a response has the mean length in the "
        "tables of the study: "
        f"{old_mean:,.0f} bytes, its bytes per second over its requests per second. Here a file "
        f"has {mean_answer():,.0f} bytes on average over all requests; a head is added. "
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
        for name, old in originals.FIGURES["2001 settings"]
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
    for kind, of_kind in files().items():
        sizes = [float(size) for size in of_kind.values()]
        cells = (sum(sizes), min(sizes), max(sizes), kind.probability)
        rows.append([kind.name, float(len(sizes)), *cells])
    rows.append(["all", float(FILES), float(OCTETS), None, None, 1.0])
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
