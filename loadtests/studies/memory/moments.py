"""Memory of a server when idle, after ten and after a hundred parallel requests."""

from __future__ import annotations

import time
from dataclasses import asdict

from loadtests.servers.registry import Server
from loadtests.servers.running import Running
from loadtests.studies import sample
from loadtests.studies.bench.scenarios import LIGHT
from loadtests.studies.engine import Lab
from loadtests.studies.memory import parallel
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


def take(lab: Lab, study: str, number: int, server: Server) -> str:
    """Looks at a server when it has started, and after each number of requests."""
    with Running(server, LIGHT, core=lab.server_core) as running:
        settle(running)
        looks = {IDLE: look(running)}
        for moment, count in AFTER.items():
            parallel.ask(running, count)
            looks[moment] = look(running)
    requests = 1
    for moment, usage in looks.items():
        requests += AFTER.get(moment, 0)
        fields = {"scenario": moment, "requests": requests, **asdict(usage)}
        sample.store(lab, study, server, number, **fields)
    last = looks[LAST]
    return f"PSS {last.pss / 2**20:.1f} MiB in {last.processes} processes"
