"""Measures short requests of one client while other threads compute."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from loadtests.clients.native import fetch
from loadtests.reporting.model import Axis, Column, Section
from loadtests.servers.registry import Server
from loadtests.servers.running import Running
from loadtests.store import Record
from loadtests.studies import sample, tables
from loadtests.studies.bench import scenarios
from loadtests.studies.engine import Lab, Step, Trial

NAME = "fair"
COMPUTING = 7
"""Clients of the handler that computes: each server has eight threads."""
LONG, SHORT = "/?4200000", "/?1"
LONG_SECONDS = 0.1
"""About what it takes where nothing else is computed."""
PAUSE = 0.01
"""Seconds between two short requests."""
BEFORE = 1.5
"""Seconds for which only the computing ones are there."""


def steps(lab: Lab, chosen: Sequence[Server]) -> list[Step]:
    return sample.rounds(lab, chosen, NAME, partial(_take, lab))


def _take(lab: Lab, number: int, server: Server) -> str:
    seconds = 3 * lab.seconds
    with (
        Running(server, scenarios.BURN, target=SHORT, core=lab.server_core) as running,
        ThreadPoolExecutor(1) as beside,
    ):
        sample.warm(running, SHORT, lab.client_core)
        # All eight threads have run by then.
        computing = beside.submit(
            fetch.traced,
            running.port,
            BEFORE + seconds,
            COMPUTING,
            [[running.at(LONG)]],
            keep=True,
            core=lab.client_core,
        )
        fetch.drive(running.port, BEFORE, 1, [[running.at(SHORT)]], core=lab.client_core)
        traced, cpu = sample.load(lab, running, seconds, 1, SHORT, keep=True, think=PAUSE)
        computed = len(computing.result().trace.total()) / (BEFORE + seconds)
    taken = sample.described(NAME, traced, cpu) | {"computed": computed}
    Trial(lab, NAME, number, server).sample(**taken)
    return f"p99 {taken['p99_us'] / 1e3:,.1f} ms, computed {computed:.1f}/s"


VALUES = (
    (Column("p99", "ms", 1, 1e-3), "p99_us"),
    (Column("median", "ms", 1, 1e-3), "p50_us"),
    (Column("mean", "ms", 1, 1e-3), "mean_us"),
    (Column("short requests"), "requests"),
    (Column("long requests answered", "/s", 1), "computed"),
)


def report(samples: Sequence[Record]) -> list[Section]:
    """Who answers short requests soonest."""
    if not samples:
        return []
    found = tables.spreads(samples, "p99_us", 1e-3)
    figure = tables.bars(
        f"{NAME}-bars",
        "Short requests beside seven that compute",
        Axis("time of a short request", "ms", low=0),
        {"median": tables.spreads(samples, "p50_us", 1e-3), "p99": found},
        subtitle="shorter is better",
    )
    table = tables.compared(
        NAME, "Short requests beside seven that compute", samples, VALUES, "p99"
    )
    text = [
        f"{COMPUTING} clients repeat a request that takes about {LONG_SECONDS:g} s of Python, and "
        "one client repeats a request that takes almost no time, with a pause of "
        f"{PAUSE * 1e3:g} ms after each answer. Each server has one process with eight threads, "
        "which share one interpreter, on one core.",
        *tables.failed(samples),
    ]
    return [
        Section(
            "Short requests beside threads that compute",
            text,
            [figure, *tables.percentiles(NAME, samples, "page_times"), table],
            tables.answer("p99 of a short request", found, "ms"),
        )
    ]
