"""Highest rate of new requests per second, found by raising it until responses fall behind."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from loadtests.clients.load import SATURATED
from loadtests.clients.native import fetch
from loadtests.reporting.model import Cell, Column, Table
from loadtests.servers.lists import application_of, with_pages
from loadtests.servers.registry import Server
from loadtests.servers.running import Running
from loadtests.stats.results import Results
from loadtests.studies import engine, sample
from loadtests.studies.engine import Lab, Step
from loadtests.studies.originals.poorhttp_2010 import MOST_UNANSWERED

RATES = tuple(100 * 2**power for power in range(8))
SECONDS, PATIENCE = 1.0, 1.0
TARGET = "/light"
KEPT, FLOODED, BUSY = "kept up with", "flooded at", "client busy"


def steps(lab: Lab, study: str, servers: Sequence[Server]) -> list[Step]:
    """Every server once, each until it is flooded."""
    return [
        Step(server, f"{study} ramp, round 1, {server.name}", partial(_take, lab, study, server))
        for server in servers
    ]


def _take(lab: Lab, study: str, server: Server) -> str:
    [paged] = with_pages([server])
    kept, flooded, busy = 0, 0, 0.0
    with Running(paged, application_of(paged), target=TARGET, core=lab.server_core) as running:
        sample.warm(running, TARGET, lab.client_core)
        for rate in RATES:
            traced = fetch.traced(
                running.port,
                SECONDS,
                1,
                [[TARGET]],
                rate=rate,
                most_unanswered=MOST_UNANSWERED,
                patience=PATIENCE,
                core=lab.client_core,
            )
            running.processes()
            busy = traced.load.busy
            if traced.trace.stopped or traced.load.errors:
                flooded = rate
                break
            kept = rate
    for name, value, unit in ((KEPT, kept, "/s"), (FLOODED, flooded, "/s"), (BUSY, busy, "")):
        engine.figure(lab, study, 0, server, name, value, unit)
    return f"{kept:,}/s, and not {flooded:,}/s" if flooded else f"{kept:,}/s and perhaps more"


def table(results: Results, study: str, order: Sequence[str], ours: frozenset[str]) -> Table | None:
    """Between which rates each has its limit, if that was looked for."""
    rows: list[list[Cell]] = []
    for server in order:
        kept = results.figure(study, server, KEPT)
        flooded, busy = (results.figure(study, server, name) for name in (FLOODED, BUSY))
        if kept:
            said = "client" if busy and busy.median >= SATURATED else ""
            rows.append([server, kept, flooded if flooded and flooded.median else None, said])
    if not rows:
        return None
    columns = (
        Column("server"),
        Column(KEPT, "/s"),
        Column(FLOODED, "/s"),
        Column("no time left"),
    )
    return Table(
        f"{study}-ramp",
        "How many new requests each second",
        columns,
        rows,
        ours,
        f"The light page, evenly paced, each rate for {SECONDS:g} s. Flooded: {MOST_UNANSWERED} "
        f"unanswered, or a request failed or was unanswered {PATIENCE:g} s after the last.",
    )
