"""Highest rate of new requests per second, found by raising it until responses fall behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from loadtests.clients.load import SATURATED
from loadtests.clients.native import fetch
from loadtests.reporting.model import Cell, Column, Section, Table
from loadtests.servers.pages import application_of, with_pages
from loadtests.servers.registry import Server
from loadtests.servers.running import Running
from loadtests.stats.results import Results
from loadtests.studies import engine, sample, tables
from loadtests.studies.engine import Lab, Step
from loadtests.studies.originals.poorhttp_2010 import MOST_UNANSWERED

RATES = tuple(100 * 2**power for power in range(8))
SECONDS, PATIENCE = 1.0, 1.0
TARGET = "/light"
KEPT, FLOODED, BUSY = "kept up with", "flooded at", "client busy"


def steps(lab: Lab, study: str, servers: Sequence[Server]) -> list[Step]:
    """Every server once, each until it is flooded."""
    lab = replace(lab, rounds=1)
    return sample.rounds(lab, servers, f"{study} ramp", partial(_take, lab, study))


def _take(lab: Lab, study: str, number: int, server: Server) -> str:
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
        engine.figure(lab, study, number, server, name, value, unit)
    return f"{kept:,}/s, and not {flooded:,}/s" if flooded else f"{kept:,}/s and perhaps more"


def section(results: Results, study: str) -> Section | None:
    """Between which rates each has its limit, if that was looked for; the highest first."""
    found = {one["server"]: results.figure(study, one["server"], KEPT) for one in results.figures}
    kept = {server: one for server, one in found.items() if one}
    if not kept:
        return None
    rows: list[list[Cell]] = []
    for server in tables.ranked(kept, kept, highest=True):
        flooded, busy = (results.figure(study, server, name) for name in (FLOODED, BUSY))
        said = "client" if busy and busy.median >= SATURATED else ""
        rows.append([server, kept[server], flooded if flooded and flooded.median else None, said])
    names = ((KEPT, "/s"), (FLOODED, "/s"), ("no time left", ""))
    table = Table(
        f"{study}-ramp",
        "How many new requests each second",
        [Column("server"), *(Column(name, unit) for name, unit in names)],
        rows,
        tables.ours(kept),
        f"The light page, evenly paced, each rate for {SECONDS:g} s. Flooded: {MOST_UNANSWERED} "
        f"unanswered, or a request failed or was unanswered {PATIENCE:g} s after the last.",
        KEPT,
    )
    said = tables.answer("New requests each second", kept, "/s", highest=True)
    return Section("How many new requests each second", [], [table], said)
