"""Memory of a server when idle, after ten and after a hundred parallel requests."""

from __future__ import annotations

import time
from dataclasses import asdict

from loadtests.servers.registry import Server
from loadtests.servers.running import Running
from loadtests.studies.bench.scenarios import LIGHT
from loadtests.studies.engine import Lab, Step
from loadtests.studies.memory.over_time import parallel
from loadtests.studies.memory.usage import look

IDLE = "idle"
AFTER = {"after 10": 10, "after 100": 100}
"""Parallel requests before each further look, by the name of its scenario."""
MOMENTS = (IDLE, *AFTER)
LAST = MOMENTS[-1]

QUIET_SECONDS = 5.0


def settle(running: Running) -> None:
    """Waits until all workers have started: the first answers before the last is there.

    Then no process begins, ends or works any more.
    """
    deadline = time.monotonic() + QUIET_SECONDS
    quiet = False
    while not quiet and time.monotonic() < deadline:
        before = running.processes()
        quiet = running.is_quiet() and running.processes() == before


def step(lab: Lab, experiment: str, number: int, server: Server) -> Step:
    """Looks at a server when it has started, and after each number of requests."""

    def action() -> str:
        with Running(server, LIGHT, core=lab.server_core) as running:
            settle(running)
            looks = {IDLE: look(running)}
            for moment, count in AFTER.items():
                parallel.ask(running, count)
                looks[moment] = look(running)
        for moment, usage in looks.items():
            lab.store.add(
                "sample",
                experiment=experiment,
                scenario=moment,
                server=server.name,
                round=number,
                requests=1 + sum(list(AFTER.values())[: MOMENTS.index(moment)]),
                **asdict(usage),
            )
        last = looks[LAST]
        return f"PSS {last.pss / 2**20:.1f} MiB in {last.processes} processes"

    return Step(server, f"{experiment}, round {number + 1}, {server.name}", action)
