"""The study `webbench`: files of a workload at random; requests and bytes per second."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise

from loadtests.clients.native import fetch
from loadtests.clients.native.trace import RIGHT, Trace
from loadtests.errors import ServerFailure
from loadtests.measure import histogram, resources
from loadtests.servers.material import Published
from loadtests.servers.registry import STATIC, Server
from loadtests.servers.running import Running
from loadtests.studies import sample
from loadtests.studies.engine import Lab, Step
from loadtests.studies.originals import client_2001
from loadtests.studies.study import Scale, Study
from loadtests.studies.webbench import report, workload

NAME = report.NAME
THREADS = 4
RECEIVE = 8_192
THINK = 0.0
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
    """How the client asks. Times in seconds, `receive` in octets."""

    length: float
    ramp: float
    threads: int = THREADS
    think: float = THINK
    receive: int = RECEIVE
    http: str = OLD


@dataclass(frozen=True)
class Phase:
    """Answers that came to their end within a time, and octets of them, heads included."""

    seconds: float
    answers: int
    octets: int
    times: Sequence[int]
    """Microseconds."""


def _number(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a time")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return value


def arguments(parser: argparse.ArgumentParser) -> None:
    """What could be set in WebBench."""
    parser.add_argument(
        "--threads", type=_count, default=THREADS, metavar="N", help=f"default {THREADS}"
    )
    parser.add_argument(
        "--think",
        type=_number,
        default=THINK,
        metavar="SECONDS",
        help=f"between an answer and the next request; default {THINK:g}",
    )
    parser.add_argument(
        "--buffer",
        type=_count,
        default=RECEIVE,
        metavar="OCTETS",
        help=f"received at once; default {RECEIVE}",
    )
    parser.add_argument(
        "--ramp",
        type=_number,
        metavar="SECONDS",
        help="before and behind what is counted; default a tenth of its length",
    )
    parser.add_argument(
        "--http",
        choices=(OLD, NEW),
        default=OLD,
        help=f"{OLD} connects for each request, {NEW} keeps its connections; default {OLD}",
    )


def settings(scale: Scale, options: argparse.Namespace) -> Settings:
    """Those of the command line; the length is that of the scale."""
    ramp = RAMP_SHARE * scale.seconds if options.ramp is None else options.ramp
    return Settings(
        scale.seconds, ramp, options.threads, options.think, options.buffer, options.http
    )


def plan(
    lab: Lab, scale: Scale, servers: Sequence[Server], options: argparse.Namespace
) -> list[Step]:
    """A step a server and round."""
    lab = replace(lab, rounds=scale.rounds)
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
    up, counted, down = phases(seen.trace, chosen)
    if not counted.answers:
        raise ServerFailure(f"it answered no request in time: {said}")
    times, longest = histogram.record(counted.times), float(max(counted.times))
    sample.store(
        lab,
        NAME,
        server,
        number,
        scenario=f"workload-{chosen.threads}",
        seed=workload.SEED,
        files=client_2001.FILES,
        file_octets=client_2001.OCTETS,
        **asdict(chosen),
        requests=counted.answers,
        octets=counted.octets,
        seconds=counted.seconds,
        rate=round(counted.answers / counted.seconds, 2),
        octet_rate=round(counted.octets / counted.seconds, 1),
        ramp_up_rate=_rate(up),
        ramp_down_rate=_rate(down),
        p50_us=histogram.quantile(times, 0.5, longest),
        p99_us=histogram.quantile(times, 0.99, longest),
        max_us=longest,
        times=histogram.encode(times),
        errors=seen.load.errors,
        client_busy=round(seen.load.busy, 3),
        **({} if server.name in FORKING else {"cpu_us": round(cpu / seen.load.requests * EACH, 2)}),
    )
    rate, octets = counted.answers / counted.seconds, counted.octets / counted.seconds
    return f"{rate:9,.0f}/s  {octets / 1e6:8,.1f} MB/s"


def phases(trace: Trace, chosen: Settings) -> tuple[Phase, Phase, Phase]:
    """Ramp up, what is counted, and ramp down: an answer belongs to where it came to its end."""
    bounds = [0.0, chosen.ramp, chosen.ramp + chosen.length, chosen.length + 2 * chosen.ramp]
    found = []
    for begin, end in pairwise(bounds):
        rows = [
            row
            for row in range(len(trace))
            if trace.kind[row] == RIGHT and begin * EACH <= trace.ended[row] < end * EACH
        ]
        found.append(
            Phase(
                end - begin,
                len(rows),
                sum(trace.octets[row] for row in rows),
                [trace.ended[row] - trace.intended[row] for row in rows],
            )
        )
    return found[0], found[1], found[2]


def _rate(phase: Phase) -> float:
    return round(phase.answers / phase.seconds, 2) if phase.seconds else 0.0


STUDY = Study(
    NAME,
    "6,471 files of 64 MB at random: requests and bytes per second",
    "the study of the client's influence, 2001",
    lambda: STATIC,
    plan,
    report.report,
    arguments,
)
