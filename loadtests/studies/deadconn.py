"""The study `deadconn`: throughput and latency beside idle (dead) connections."""

from __future__ import annotations

import contextlib
import statistics
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from loadtests.apps.pattern import pieces
from loadtests.clients.adverse import AdverseClients
from loadtests.clients.connection import Connection
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import resources
from loadtests.measure.machine import allow_files
from loadtests.measure.waiting import patience, wait_until
from loadtests.reporting.model import Axis, Cell, Column, Panels, Section, Table
from loadtests.servers.pages import published
from loadtests.servers.registry import OURS, STATIC, WSGI, Server
from loadtests.servers.running import Running
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import engine, originals, tables
from loadtests.studies.bench.scenarios import DOCUMENTS, Scenario
from loadtests.studies.engine import Lab, Step, Trial, rounds
from loadtests.studies.study import Scale, Study

NAME = "deadconn"
SELECT = "waitress 8 threads"
"""The one that waits by select()."""
SIZES = (128, 512, 1024)
"""Bytes of an answer, as in the study of 2001."""
LIVE = 64
"""Connections that ask, one request after another."""
LEVELS: dict[str, Sequence[int]] = {
    "full": (0, 900, 3_000, 6_000, 9_000, 12_000, 15_000, 18_000),
    "quick": (0, 900, 6_000),
    "tiny": (0, 200),
}
"""Dead connections by scale. With the live ones, 900 are about as many as select() has room for."""
ACCEPT_SECONDS = patience(12.0)
ANSWER_SECONDS = patience(5.0)
ROOM = 500
"""Descriptors beyond those of the dead."""
MOST = 19_000
"""Connections that servers are told to take, where they have to be told."""

OTHERS = ("gunicorn gevent", SELECT, "waitress 8 threads, poll", "nginx", "lighttpd")
"""Servers besides our modes."""
# The dead shall be there while we measure, and nobody has to keep so many by default.
_PATIENCE = {
    " --access-log": " --header-timeout 3600 --keepalive-timeout 3600 --access-log",
    " --connection-limit 900": f" --connection-limit {MOST} --channel-timeout 3600",
    " --worker-class gevent": f" --worker-class gevent --worker-connections {MOST}",
    "worker_connections 2048;": f"worker_connections {MOST};",
    "sendfile on;": "sendfile on; client_header_timeout 3600; keepalive_timeout 3600;",
    "server.max-fds = 16384": f"server.max-fds = {MOST + ROOM}",
    "server.max-connections = 2048": f"server.max-connections = {MOST}",
    "server.max-keep-alive-idle = 75": (
        "server.max-keep-alive-idle = 3600\nserver.max-read-idle = 3600"
    ),
}
"""What commands and configurations have, and what stands for it here."""


def servers() -> Sequence[Server]:
    """Those that wait by epoll, one by poll() and one by select()."""
    known = {server.name: server for server in (*STATIC, *WSGI)}
    return [
        replace(
            one,
            command=_patient(one.command),
            files=tuple((name, _patient(text)) for name, text in one.files),
        )
        for one in (*OURS, *(known[name] for name in OTHERS))
    ]


def _patient(text: str) -> str:
    for before, after in _PATIENCE.items():
        text = text.replace(before, after)
    return text


def plan(lab: Lab, scale: Scale, chosen: Sequence[Server], options: Namespace) -> list[Step]:
    """A step a server and round, in which dead connections are added from level to level."""
    return rounds(lab, NAME, chosen, partial(_take, counts=LEVELS[scale.name]))


def _take(trial: Trial, counts: Sequence[int]) -> str:
    """Adds dead connections from level to level; a server that fails there is told of.

    They are made while the server runs, and held by a process of their own.
    """
    server, core = trial.server, trial.lab.client_core
    for count in counts:
        # The server inherits the limit: that of the highest level for which there are descriptors.
        with contextlib.suppress(LabError):
            allow_files(count + ROOM)
    reached: list[str] = []
    with contextlib.ExitStack() as stack:
        application = DOCUMENTS
        if "{module}" not in server.command:
            documents = {f"/{size}": b"".join(pieces(size)) for size in SIZES}
            application = stack.enter_context(published(documents))
        running = stack.enter_context(trial.running(application, f"/{SIZES[0]}"))
        files = running.idle_descriptors(ANSWER_SECONDS)
        there = 0
        for count in counts:
            try:
                allow_files(count + ROOM)
                if count > there:
                    more = AdverseClients("dead", running.port, count - there, core=core)
                    stack.enter_context(more)
                    there = count
                    _wait(running, files + count, count)
                rates = _measure(trial, running, count)
                held = resources.descriptors(running.processes()) - files
                if count and held < count:
                    raise ServerFailure(f"of {count:,} dead connections it holds {held:,}")
            except (ServerFailure, LabError) as failure:
                if not reached:
                    raise
                reason = str(failure)
                try:
                    running.processes()
                except ServerFailure as death:
                    # Clients only see that they are refused.
                    reason = str(death)
                number = trial.number
                what = f"{NAME}, round {number + 1}, {server.name}, {count:,} dead"
                place = {"server": server.name, "study": NAME, "dead": count, "round": number}
                trial.lab.store.add("failure", what=what, reason=reason, **place)
                reached.append(f"not beside {count:,}: {reason}")
                break
            reached.append(f"{count:,}: {rates:,.0f}/s")
    return ", ".join(reached)


def _wait(running: Running, files: int, count: int) -> None:
    """Until the server has accepted all, and answers. Raises ServerFailure if it does not."""

    def left() -> int:
        return files - resources.descriptors(running.processes())

    if not wait_until(lambda: left() <= 0, ACCEPT_SECONDS, 0.05):
        raise ServerFailure(
            f"it has accepted {count - left():,} of {count:,} dead connections after "
            f"{ACCEPT_SECONDS:.0f} s; {running.last_words()}"
        )
    try:
        with Connection(running.port, ANSWER_SECONDS) as connection:
            connection.ask(running.request)
    except (OSError, ServerFailure) as error:
        running.processes()
        raise ServerFailure(
            f"a request beside {count:,} dead connections: {error}; {running.last_words()}"
        ) from None


def _measure(trial: Trial, running: Running, count: int) -> float:
    """Stores a sample for each size and returns the lowest rate."""
    rates: list[float] = []
    for size in SIZES:
        title, target = f"{size:,}-byte answer", f"/{size}"
        scenario = Scenario(f"document{size}", title, running.application, LIVE, target=target)
        # The first of all warms it up for all.
        warm = engine.WARM_SECONDS if not count and not rates else 0.0
        taken = trial.observe(scenario, running, warm)
        taken["scenario"] = f"{scenario.name}, {count:,} dead"
        trial.lab.store.add("sample", size=size, dead=count, **taken)
        rates.append(taken["rate"])
    return min(rates)


FD_SETSIZE = 1_024
KNOWN_LIMITS = {
    "lighttpd": "It takes no more connections than half of the descriptors that it may have",
    "waitress 8 threads, poll": "It accepts a connection each time it has looked at all",
}
SLOWER = 0.9
"""The share of its rate without dead connections below which a server suffers from them."""
MEASURES = {
    "rate": ("Reply rate", Column("replies per second", "1/s")),
    "mean_us": ("Response time", Column("mean response time", "ms", 2, 1e-3)),
    "cpu_us": ("CPU", Column("server's CPU time per reply", "µs", 1)),
}
"""Title and column of fields of the samples."""
RATE = "rate"
"""The one of which more is better."""


def report(results: Results) -> list[Section]:
    """All of it; of what failed, that it failed."""
    samples = results.samples
    if not samples:
        return []
    sizes = dict(sorted(tables.by(samples, "size").items()))
    counts = sorted(tables.by(samples, "dead"))
    most = counts[-1]
    ended = [failure for failure in results.failures if "dead" in failure]
    listed = tables.listed([f"{size:,}" for size in sizes])
    text = [
        "How quickly are clients served beside connections on which nothing happens? Clients on "
        f"persistent connections ask for responses of {listed} bytes "
        f"while {counts[0]:,} to {most:,} others are dead: half "
        "of them silent, half in the middle of a head.",
        *_remarks(results, ended),
    ]
    kept, answer = _kept(samples, list(sizes))
    parts: list[Table | Panels] = [_figure(sizes, RATE), kept, *_ended(ended)]
    sections = [Section("Dead connections", text, parts, answer)]
    size, smallest = next(iter(sizes.items()))
    beside = [one for one in smallest if one["dead"] == most]
    for field, (title, column) in MEASURES.items():
        what = f"{column.name.capitalize()} beside {most:,} dead connections, {size:,} bytes"
        found = tables.spreads(beside, field, column.scale)
        said = tables.answer(what, found, column.unit, highest=field == RATE)
        shown: list[Table | Panels] = [] if field == RATE else [_figure(sizes, field)]
        shown += [_table(size, own, field, counts) for size, own in sizes.items()]
        sections.append(Section(f"{title} by dead connections", [], shown, said))
    return [*sections, originals.section("Dead connections in 2001", f"{NAME}-2001")]


def _kept(samples: Sequence[Record], sizes: Sequence[int]) -> tuple[Table, str]:
    """The share of its rate that each server keeps beside the most dead connections."""
    rows: list[list[Cell]] = []
    shares: dict[str, float] = {}
    spared = set()
    for server, own in tables.by_server(samples).items():
        ends = {}
        for size, of_size in tables.by(own, "size").items():
            rates = tables.along(of_size, RATE, "dead")
            ends[size] = (rates[0], rates[max(rates)]) if 0 in rates and len(rates) > 1 else None
        kept = {size: end[1].median / end[0].median for size, end in ends.items() if end}
        rows.append([server, float(max(one["dead"] for one in own)), *map(kept.get, sizes)])
        if kept:
            shares[server] = statistics.median(kept.values())
            # Its best round beside the dead is below its worst without, for every size.
            suffers = all(end and end[1].high < end[0].low for end in ends.values())
            if shares[server] >= SLOWER or not suffers:
                spared.add(server)
    best = sorted(shares, key=lambda server: -shares[server])
    said = (
        f"These keep at least {SLOWER:.0%} of their reply rate, or what lies within the spread of "
        f"the rounds: {', '.join(one for one in best if one in spared) or 'none'}"
    )
    if suffering := [f"{one} keeps {shares[one]:.0%}" for one in best if one not in spared]:
        said += f"; of the others, {', '.join(suffering)}"
    table = tables.table(
        f"{NAME}-kept",
        "What is left of the reply rate beside the most dead connections",
        [
            *("server", "most dead connections"),
            *(Column(f"{size:,} bytes", "%", 0, 100) for size in sizes),
        ],
        sorted(rows, key=lambda row: -shares.get(str(row[0]), -1.0)),
        "Against the same server without dead connections; in order of the median of the sizes.",
    )
    return table, f"{said}." if shares else ""


def _by_select(failure: Record) -> bool:
    return failure["server"] == SELECT and int(failure["dead"]) + 10 >= FD_SETSIZE - 100


def _remarks(results: Results, ended: Sequence[Record]) -> list[str]:
    said = []
    if limited := [int(one["dead"]) for one in ended if _by_select(one)]:
        said.append(
            f"{SELECT} waits with select(), which has room for {FD_SETSIZE:,} descriptors "
            f"(FD_SETSIZE), so it cannot serve beside {min(limited):,} dead connections."
        )
    others = Results([one for one in (*results.failures, *results.missing) if one not in ended])
    return [
        *said,
        *tables.saturated(results.samples),
        *tables.failed(results.samples),
        *tables.lost(others),
    ]


def _ended(failures: Sequence[Record]) -> list[Table]:
    """The servers that did not get to the end, and why; none if there are none."""
    rows: list[list[Cell]] = []
    for failure in failures:
        server, reason = str(failure["server"]), str(failure["reason"])
        if _by_select(failure):
            reason = f"select() has no descriptors from {FD_SETSIZE:,} on: {reason}"
        elif server in KNOWN_LIMITS:
            reason = f"{KNOWN_LIMITS[server]}: {reason}"
        rows.append([server, float(failure["round"] + 1), float(failure["dead"]), reason])
    columns = ("server", "round", "dead connections", "what happened")
    title = "Servers that did not get to the end"
    return [tables.table(f"{NAME}-ends", title, columns, rows)] if rows else []


def _table(size: int, samples: Sequence[Record], field: str, counts: Sequence[int]) -> Table:
    title, column = MEASURES[field]
    return tables.compared(
        f"{NAME}-{field}-{size}",
        f"{title} by number of dead connections, {size:,} bytes",
        samples,
        [
            (replace(column, name=f"{count:,} dead"), tables.where("dead", count, field))
            for count in counts
        ],
        f"{counts[-1]:,} dead",
        highest=field == RATE,
    )


def _figure(sizes: Mapping[int, Sequence[Record]], field: str) -> Panels:
    title, column = MEASURES[field]
    panels = [
        tables.lines(
            f"{NAME}-{field}-{size}",
            f"{size:,} bytes",
            Axis("dead connections", low=0),
            Axis(column.name, column.unit, log=True),
            {
                server: tables.along(own, field, "dead").items()
                for server, own in tables.by_server(samples).items()
            },
            column.scale,
            marks=True,
        )
        for size, samples in sizes.items()
    ]
    return Panels(
        f"{NAME}-{field}-figure",
        f"{title} by dead connections",
        panels,
        "A level line is a server that dead connections do not slow; one that ends early is a "
        "server that could not hold more.",
    )


STUDY = Study(
    NAME,
    "replies, time and CPU beside 0 to 18,000 connections on which nothing happens",
    "the epoll study, 2001",
    servers,
    plan,
    report,
    given=True,
    # Short samples: there are 24 a server and round.
    scales=(Scale("quick", 1, 0.45), Scale("full", 2, 0.45), Scale("tiny", 1, 0.2)),
)
