"""Leak check: whether memory grows with the number of requests, of all kinds and some aborted."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import NamedTuple

from loadtests.clients.connection import Connection, request_bytes
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.measure.waiting import patience, wait_until
from loadtests.reporting.model import MIB, Axis, Cell, Column, Section
from loadtests.servers.application import Application
from loadtests.servers.registry import Server
from loadtests.servers.running import Running
from loadtests.stats.results import Results
from loadtests.stats.trend import CONFIDENCE, Slope, theil_sen
from loadtests.studies import tables
from loadtests.studies.engine import Trial

SCENARIO = "leak check"
VARIED = Application("loadtests/apps", "varied", dated=True)
SEED = 2010
SETTLE_SECONDS = patience(3.0)
"""In which a server notices that its clients have gone."""
STEADY_SECONDS = 0.1
"""In which its descriptors then do not change."""
WARM_UP = 20_000
"""Requests after which all threads have had about the largest body that they will get."""
UNDECIDED = "undecided"
LEAST = 16_000.0
"""Bytes per 1,000 requests from which on it is a leak: Python's smallest object for each request.

Less than that comes of allocators whose high-water mark still rises a little.
"""
SLACK = 1 << 20
"""Bytes that allocators may come to hold besides: few requests only show a leak above that."""

LANES = 8
"""Connections, on each of which a request is sent before the answers are read."""
POSTED = 1, 64_000
"""The least and the most bytes of a body."""
HEAD, BODY, ANSWER = "aborted in its head", "aborted in its body", "aborted before its answer"
SHARES = {"light": 40, "heavy": 20, "not found": 15, "post": 15, HEAD: 3, BODY: 4, ANSWER: 3}
"""In hundredths."""


class Request(NamedTuple):
    """`status` is that of the right answer, None if the client closes the connection instead."""

    kind: str
    octets: bytes
    status: int | None = 200


LIGHT = Request("light", request_bytes("/light"))
HEAVY = Request("heavy", request_bytes("/heavy"))
NOT_FOUND = Request("not found", request_bytes("/missing"), 404)


def drawn(seed: int, count: int) -> list[Request]:
    """So many requests, the same for the same seed."""
    lot = random.Random(seed)
    kinds = lot.choices(list(SHARES), list(SHARES.values()), k=count)
    return [_request(kind, lot) for kind in kinds]


def _request(kind: str, lot: random.Random) -> Request:
    for request in (LIGHT, HEAVY, NOT_FOUND):
        if kind == request.kind:
            return request
    if kind == HEAD:
        return Request(kind, LIGHT.octets[: lot.randrange(1, len(LIGHT.octets) - 1)], None)
    if kind == ANSWER:
        return Request(kind, HEAVY.octets, None)
    post = request_bytes("/post", body=bytes(lot.randint(*POSTED)))
    if kind == BODY:
        head = post.index(b"\r\n\r\n") + 4
        return Request(kind, post[: lot.randrange(head, len(post))], None)
    return Request(kind, post)


def ask(port: int, requests: Sequence[Request]) -> None:
    """Sends them on LANES connections, of which one that was given up is made anew.

    Raises ServerFailure if one is not answered, or with another status.
    """
    with ExitStack() as stack:
        lanes: dict[int, Connection] = {}
        for first in range(0, len(requests), LANES):
            together = requests[first : first + LANES]
            try:
                for lane, request in enumerate(together):
                    if lane not in lanes:
                        lanes[lane] = stack.enter_context(Connection(port))
                    lanes[lane].send(request.octets)
                for lane, request in enumerate(together):
                    if request.status is None:
                        lanes.pop(lane).close()
                    elif (status := lanes[lane].read().status) != request.status:
                        raise ServerFailure(
                            f"{request.kind}: status {status}, not {request.status}"
                        )
            except OSError as error:
                raise ServerFailure(f"after {first:,} requests: {error}") from None


def take(trial: Trial, ends: range) -> str:
    """Looks at a server after each stage, when all clients have left. The first is a warm-up."""
    points, asked = endure(trial.server, VARIED, ends, trial.lab.server_core)
    trial.sample(
        scenario=SCENARIO,
        seed=SEED,
        requests=ends[-1],
        warm_up=ends[0],
        asked=dict(asked),
        stages=points,
    )
    return f"{growth(points, 'uss').estimate:,.0f} bytes per 1,000 requests"


def endure(
    server: Server, application: Application, ends: range, core: int | None
) -> tuple[list[dict[str, int]], Counter[str]]:
    """What is held after the warm-up and each stage, and how many requests there were of a kind.

    Raises ServerFailure if an answer is wrong or missing, or if a process of the server ends.
    """
    requests = drawn(SEED, ends[-1])
    points: list[dict[str, int]] = []
    with Running(server, application, target="/light", core=core) as running:
        # It may answer before all of its workers have started.
        wait_until(running.is_quiet, SETTLE_SECONDS, 0)
        before: list[int] = []
        for begin, end in pairwise((0, *ends)):
            ask(running.port, requests[begin:end])
            _settle(running)
            now = running.processes()
            if before and now != before:
                raise ServerFailure(
                    f"its processes are not the same after {end:,} requests: {running.last_words()}"
                )
            before = now
            used = resources.memory(now)
            held = {"pss": used.pss, "uss": used.uss, "descriptors": resources.descriptors(now)}
            points.append({"requests": end, **held})
    return points, Counter(request.kind for request in requests)


def _settle(running: Running) -> None:
    """Waits until a server has closed the connections of clients that have left."""
    seen = [-1]

    def steady() -> bool:
        seen.append(resources.descriptors(running.processes()))
        return seen[-1] == seen[-2]

    wait_until(steady, SETTLE_SECONDS, STEADY_SECONDS)


def growth(points: Sequence[Mapping[str, int]], of: str) -> Slope:
    """Of a field of the points, per 1,000 requests."""
    return theil_sen([(point["requests"] / 1000, point[of]) for point in points])


def verdict(slope: Slope, requests: int) -> str:
    """What the interval says of the memory after so many requests that count."""
    if slope.high <= LEAST:
        return "does not grow"
    least = max(LEAST, SLACK / requests * 1000)
    return "grows" if slope.low > least else UNDECIDED


COLUMNS = (
    Column("configuration"),
    Column("growth of USS", "bytes"),
    *(Column(f"{end} of its interval", "bytes") for end in ("low end", "high end")),
    Column("growth of PSS", "bytes"),
    *(Column(f"{end} of that", "bytes") for end in ("low end", "high end")),
    Column("USS at the end", "MiB", 1, MIB),
    Column("requests"),
    Column("descriptors at the end"),
    Column("memory"),
    Column("descriptors"),
)


def section(results: Results) -> Section:
    found = {s["server"]: s for s in results.samples if s["scenario"] == SCENARIO}
    slopes = {name: growth(one["stages"], "uss") for name, one in found.items()}
    told: list[str] = []
    lines: dict[str, list[tuple[float, float]]] = {}
    rows: list[list[Cell]] = []
    verdicts: dict[str, list[str]] = {}
    for name in sorted(slopes, key=lambda name: slopes[name].estimate):
        one, slope, points = found[name], slopes[name], found[name]["stages"]
        memory = "not told after so short a warm-up"
        if one["warm_up"] >= WARM_UP:
            memory = verdict(slope, one["requests"] - one["warm_up"])
        verdicts.setdefault(memory, []).append(name)
        grown = growth(points, "descriptors").low > 0
        descriptors = "grow" if grown else "do not grow"
        told.append(
            f"{name}: memory {memory} ({slope.estimate:,.0f} bytes per 1,000 requests, "
            f"{slope.low:,.0f} to {slope.high:,.0f}), descriptors {descriptors}."
        )
        start, last = points[0]["uss"], points[-1]
        lines[name] = [(one["requests"] / 1000, (one["uss"] - start) / 1024) for one in points]
        held = [float(last[field]) for field in ("uss", "requests", "descriptors")]
        rows.append([name, *slope, *growth(points, "pss"), *held, memory, descriptors])
    first = next(iter(found.values()))
    asked = ", ".join(f"{count:,} {kind}" for kind, count in first["asked"].items())
    text = [
        f"Requests of all kinds in random order, eight at a time ({asked}), in "
        f"{len(first['stages']) - 1} equal stages after a warm-up of {first['warm_up']:,} that "
        "does not count. After each stage all clients leave, and the server's memory and "
        f"descriptors are read. The slope is that of Theil and Sen, with its {CONFIDENCE:.0%} "
        f"interval. Memory grows if the whole interval is above {LEAST:,.0f} bytes per 1,000 "
        "requests, the smallest object of Python for each, and the growth is more than "
        f"{SLACK >> 20} MiB in all. It does not grow if the whole interval is below; otherwise it "
        "is undecided, and only more requests can tell. Less growth cannot be told from allocators "
        "whose high-water mark still rises a little.",
        *told,
    ]
    figure = tables.lines(
        "memory-leak-lines",
        "Private memory since the warm-up",
        Axis("requests", "thousands", low=0),
        Axis("change of USS", "KiB"),
        lines,
        subtitle="after each stage, when all clients have left",
        caption=f"Seed {first['seed']}.",
        marks=True,
    )
    table = tables.table(
        "memory-leak",
        "Growth per 1,000 requests",
        COLUMNS,
        rows,
        "USS is private memory, PSS divides shared pages; descriptors at the end.",
        COLUMNS[1].name,
    )
    said = "; ".join(
        f"{'it is ' if words == UNDECIDED else 'memory '}{words}"
        f"{' whether it grows' if words == UNDECIDED else ''} with {', '.join(who)}"
        for words, who in verdicts.items()
    )
    return Section("Does memory grow?", text, [figure, table], f"{said[0].upper()}{said[1:]}.")
