"""The study `deadconn`: throughput and latency beside idle (dead) connections.

Half of the dead connections say nothing, half stay in the middle of a head. They are made in steps
while the server runs, and held by a process of their own.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from loadtests.apps.pattern import pieces
from loadtests.clients.adverse.handle import AdverseClients
from loadtests.clients.connection import Connection, request_bytes
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import resources
from loadtests.measure.machine import allow_files
from loadtests.servers.application import Application
from loadtests.servers.material import Published
from loadtests.servers.registry import Server
from loadtests.servers.running import Running
from loadtests.studies import engine, sample
from loadtests.studies.bench.scenarios import DOCUMENTS, Scenario
from loadtests.studies.deadconn import report
from loadtests.studies.deadconn.servers import ROOM, servers
from loadtests.studies.engine import Lab, Step
from loadtests.studies.study import FULL, TINY, Scale, Study

NAME = report.NAME
SIZES = (128, 512, 1024)
"""Octets of an answer, as in the study of 2001."""
LIVE = 64
"""Connections that ask, one request after another."""
LEVELS = (0, 900, 3_000, 6_000, 9_000, 12_000, 15_000, 18_000)
"""Dead connections. With the live ones, 900 are about as many as select() has room for."""
QUICK_LEVELS = (0, 900, 6_000, 18_000)
TINY_LEVELS = (0, 200)
ROUNDS = 2
"""At most."""
LONGEST_SECONDS = 0.45
"""Of a sample: there are 24 a server and round."""
ACCEPT_SECONDS = 12.0
ANSWER_SECONDS = 5.0


def levels(scale: Scale) -> Sequence[int]:
    """How many dead connections there are, one after the other."""
    if scale.name == TINY.name:
        return TINY_LEVELS
    return LEVELS if scale.name == FULL.name else QUICK_LEVELS


def plan(
    lab: Lab, scale: Scale, chosen: Sequence[Server], options: argparse.Namespace
) -> list[Step]:
    """A step a server and round, in which dead connections are added from level to level."""
    seconds, rounds = min(LONGEST_SECONDS, scale.seconds), min(ROUNDS, scale.rounds)
    lab = replace(lab, rounds=rounds, seconds=seconds)
    return sample.rounds(lab, chosen, NAME, partial(_take, lab, levels(scale)))


def _take(lab: Lab, counts: Sequence[int], number: int, server: Server) -> str:
    """Adds dead connections from level to level; a server that fails there is told of."""
    possible = _possible(counts)
    reached: list[str] = []
    with (
        _application(server) as application,
        Running(server, application, target=f"/{SIZES[0]}", core=lab.server_core) as running,
        contextlib.ExitStack() as crowds,
    ):
        files = running.idle_descriptors(ANSWER_SECONDS)
        there = 0
        for count in counts:
            try:
                if count not in possible:
                    allow_files(count + ROOM)
                if count > there:
                    crowds.enter_context(
                        AdverseClients("dead", running.port, count - there, core=lab.client_core)
                    )
                    there = count
                    _wait(running, files + count, count)
                rates = _measure(lab, number, server, application, running, count)
                _hold(running, files + count, count)
            except (ServerFailure, LabError) as failure:
                if not reached:
                    raise
                failure = _death(running) or failure
                _record_end(lab, number, server, count, failure)
                reached.append(f"not beside {count:,}: {failure}")
                break
            reached.append(f"{count:,}: {rates:,.0f}/s")
    return ", ".join(reached)


def _possible(counts: Sequence[int]) -> list[int]:
    """The levels for which there are descriptors. The server gets the limit of the highest."""
    possible = []
    for count in counts:
        try:
            allow_files(count + ROOM)
        except LabError:
            break
        possible.append(count)
    return possible


@contextlib.contextmanager
def _application(server: Server) -> Iterator[Application]:
    """What the server serves: an application, or files in a folder that vanishes."""
    if server.ours or "{module}" in server.command:
        yield DOCUMENTS
        return
    with tempfile.TemporaryDirectory(prefix="loadtests-dead-") as folder:
        # Some servers give up root's rights before they read anything.
        Path(folder).chmod(0o755)
        for size in SIZES:
            (Path(folder) / str(size)).write_bytes(b"".join(pieces(size)))
        yield Published(folder, type="")


def _wait(running: Running, files: int, count: int) -> None:
    """Until the server has accepted all, and answers. Raises ServerFailure if it does not."""
    deadline = time.monotonic() + ACCEPT_SECONDS
    while (held := resources.descriptors(running.processes())) < files:
        if time.monotonic() > deadline:
            raise ServerFailure(
                f"it has accepted {held - files + count:,} of {count:,} dead connections after "
                f"{ACCEPT_SECONDS:.0f} s; {running.last_words()}"
            )
        time.sleep(0.05)
    try:
        with Connection(running.port, ANSWER_SECONDS) as connection:
            connection.ask(request_bytes(f"/{SIZES[0]}"))
    except (OSError, ServerFailure) as error:
        running.processes()
        raise ServerFailure(
            f"a request beside {count:,} dead connections: {error}; {running.last_words()}"
        ) from None


def _hold(running: Running, files: int, count: int) -> None:
    """Raises ServerFailure if the dead were not there to the end."""
    held = resources.descriptors(running.processes())
    if count and held < files:
        raise ServerFailure(f"of {count:,} dead connections it holds {held - files + count:,}")


def _death(running: Running) -> ServerFailure | None:
    """That the server has died, if it has: clients only see that they are refused."""
    try:
        running.processes()
    except ServerFailure as failure:
        return failure
    return None


def _measure(
    lab: Lab, number: int, server: Server, application: Application, running: Running, count: int
) -> float:
    """Stores a sample for each size and returns the lowest rate."""
    rates: list[float] = []
    for size in SIZES:
        scenario = Scenario(
            f"document{size}",
            f"{size:,}-byte answer",
            application,
            LIVE,
            target=f"/{size}",
            compared=False,
        )
        # The first of all warms it up for all.
        warm = engine.WARM_SECONDS if not count and not rates else 0.0
        taken = engine.observe(lab, NAME, number, server, scenario, running, warm)
        taken["scenario"] = f"{scenario.name}, {count:,} dead"
        lab.store.add("sample", size=size, dead=count, **taken)
        rates.append(float(taken["rate"]))
    return min(rates)


def _record_end(lab: Lab, number: int, server: Server, count: int, failure: Exception) -> None:
    lab.store.add(
        "failure",
        server=server.name,
        what=f"{NAME}, round {number + 1}, {server.name}, {count:,} dead",
        reason=str(failure),
        study=NAME,
        dead=count,
        round=number,
    )


STUDY = Study(
    NAME,
    "replies, time and CPU beside 0 to 18,000 connections on which nothing happens",
    "the epoll study, 2001",
    servers,
    plan,
    report.report,
)
