"""CPU time of a message, memory of idle WebSockets, and verdicts of the protocol cases."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial

from loadtests.clients.load import Load
from loadtests.clients.native import websocket
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import resources
from loadtests.measure.machine import allow_files
from loadtests.servers.registry import Server
from loadtests.servers.registry.wire import SOCKETS
from loadtests.servers.running import Running
from loadtests.studies import engine
from loadtests.studies.bench.scenarios import Scenario
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.study import Scale
from loadtests.studies.websocket import cases
from loadtests.studies.websocket.cases import Case

CONNECTIONS = 64
SIZES = {"echo32": 32, "echo4096": 4096}
"""Bytes of a message by scenario."""
ECHO, IDLE, CASES = "echo", "idle", "cases"
EXPERIMENTS = (ECHO, IDLE, CASES)
TRIES = 8
WARM = 20
"""WebSockets that are open before memory is looked at."""


@dataclass(frozen=True)
class Echo(Scenario):
    """A scenario in which messages of `size` bytes are echoed on WebSockets."""

    size: int = 0

    def drive(self, port: int, seconds: float, core: int | None) -> Load:
        """Has them echoed; the requests of the load are messages."""
        load = websocket.drive(port, seconds, self.connections, self.size, self.target, core)
        if not load.requests and not load.is_silent:
            raise ServerFailure(f"no handshake or no message succeeded: {load.errors}")
        return load


def echo(lab: Lab, servers: list[Server]) -> list[Step]:
    """Messages of each size, with 64 connections."""
    asked = [
        {
            server: Echo(
                name,
                f"{size} bytes",
                server.application or SOCKETS,
                CONNECTIONS,
                size=size,
                compared=False,
            )
            for server in servers
        }
        for name, size in SIZES.items()
    ]
    return engine.steps(lab, asked, ECHO)


def idle(trial: Trial, count: int) -> str:
    """What so many WebSockets on which nothing happens add to private memory, and to threads."""
    allow_files(count + WARM + 200)
    with (
        Running(trial.server, core=trial.lab.server_core) as running,
        contextlib.ExitStack() as stack,
    ):
        opened = []

        def open_sockets(more: int) -> None:
            for _ in range(more):
                opened.append(stack.enter_context(cases.upgraded(running.port)))

        try:
            open_sockets(WARM)
            before, threads = resources.memory(running.processes()), _threads(running)
            open_sockets(count)
            time.sleep(0.5)
            after, more = resources.memory(running.processes()), _threads(running) - threads
            verdicts = [cases.run(cases.HELLO, one) for one in opened[:: max(count // 20, 1)]]
        except (OSError, LabError) as error:
            running.processes()
            raise ServerFailure(f"with {len(opened):,} WebSockets open: {error}") from None
    if not all(verdict.startswith(cases.OK) for verdict in verdicts):
        raise ServerFailure(f"afterwards echoes were: {dict(Counter(verdicts))}")
    each = (after.uss - before.uss) / count
    trial.sample(
        scenario=IDLE,
        requests=count,
        errors={},
        each=each,
        threads=more / count,
        uss=after.uss,
        processes=after.processes,
    )
    return f"{each / 1024:,.1f} KiB and {more / count:.1f} threads per WebSocket"


def _threads(running: Running) -> int:
    return sum(len(os.listdir(f"/proc/{process}/task")) for process in running.processes())


def take_cases(trial: Trial, chosen: list[Case]) -> str:
    """The verdict of each case, each on a WebSocket of its own."""
    verdicts = {}
    with Running(trial.server, core=trial.lab.server_core) as running:
        for case in chosen:
            try:
                verdicts[case.number] = _verdict(case, running.port)
            except (OSError, LabError) as error:
                running.processes()
                if not verdicts:
                    raise ServerFailure(str(error)) from None
                verdicts[case.number] = f"{cases.FAILED}, {error}"
    trial.note("verdicts", json.dumps(verdicts))
    counts = Counter(verdicts.values())
    trial.figure("cases", len(verdicts))
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())


def _verdict(case: Case, port: int) -> str:
    """The best of several tries: the two threads of simple-websocket race when they send."""
    found = set()
    for _ in range(TRIES):
        began = time.monotonic()
        with cases.upgraded(port) as connection:
            found.add(cases.run(case, connection))
        # What hangs is no race.
        if found & {cases.OK, cases.ANY} or time.monotonic() - began > cases.LONG:
            break
    return min(
        found, key=lambda verdict: (cases.FAILED in verdict, "," in verdict, verdict != cases.OK)
    )


def steps(lab: Lab, scale: Scale, name: str, servers: list[Server]) -> list[Step]:
    """The steps of an experiment."""
    own = replace(lab, rounds=scale.rounds if name == ECHO else 1)
    if name == ECHO:
        return echo(own, servers)
    action = (
        partial(idle, count=scale.amounts.sockets)
        if name == IDLE
        else partial(take_cases, chosen=cases.cases(scale.amounts.most))
    )
    return [
        Trial(own, name, number, server).step(action)
        for number, server in engine.in_turns(own, servers)
    ]
