"""The study `balance`: two workers beside one, and how connections spread over many."""

from __future__ import annotations

import selectors
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from loadtests.clients.connection import Connection, request_bytes
from loadtests.measure import resources
from loadtests.measure.waiting import patience
from loadtests.reporting.model import Cell, Column, Section, method
from loadtests.servers.application import Application
from loadtests.servers.pages import TABLE, with_pages
from loadtests.servers.registry import Server
from loadtests.servers.registry.commands import ours
from loadtests.servers.running import Running
from loadtests.stats.results import Results, spread
from loadtests.studies import engine, tables
from loadtests.studies.balance import simulation
from loadtests.studies.balance.constants import wakeups
from loadtests.studies.balance.simulation import POLICIES, simulate
from loadtests.studies.bench.scenarios import HELLO, Scenario
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.study import FULL, QUICK, TINY, Scale, Study, scales

NAME = "balance"
WORKER = Application("loadtests/apps", "worker", dated=True)
PLACES = ("one core", "all cores")
FLASK = Application("apps/flaskapp", "app")
SCENARIOS = {
    place: (
        *(
            Scenario(f"{page}, {place}", page, TABLE, 16, target=f"/{page}")
            for page in ("light", "heavy")
        ),
        Scenario(f"Flask, {place}", "apps/flaskapp", FLASK, 16),
    )
    for place in PLACES
}
COUNTS = (1, 2, 4, 16, 64)
"""Workers."""
BURSTS = (1, 8, 64)
"""Connections that are opened at once."""
BURST_SECONDS = 0.2
SIMULATED = 64
PATIENCE = patience(20.0)


def _forking(count: int, *options: str) -> Server:
    name = ", ".join([f"forking {count}", *(option.removeprefix("--") for option in options)])
    return ours(name, "#2ca6c4", f"forking --workers {count}", options=" ".join(options))


SHARED = {count: _forking(count) for count in COUNTS}
OWN = {count: _forking(count, "--reuse-port") for count in COUNTS[2:]}
"""Each worker has a listening socket of its own."""
WAYS = tuple(Server(name, "#8a8f98", "simulated") for name in POLICIES)
SERVERS = (*SHARED.values(), *OWN.values(), *WAYS)
WORKERS = {server: count for known in (SHARED, OWN) for count, server in known.items()}


def _workers(lab: Lab, servers: Sequence[Server]) -> list[Step]:
    """One worker and two, on one core and free to use all, with wrk."""
    steps = []
    for place, own in zip(PLACES, (lab, lab.unpinned()), strict=True):
        for scenario in SCENARIOS[place]:
            known = with_pages(servers) if scenario.application is TABLE else servers
            run = partial(engine.measure, scenario=scenario)
            steps += engine.rounds(own, "workers", known, run, f", {scenario.kind}")
    return steps


def burst(port: int, count: int, seconds: float) -> tuple[Counter[bytes], Counter[bytes]]:
    """Opens connections, all of which ask again when they are answered.

    Returns connections and requests by worker.
    """
    asked, workers = Counter[bytes](), dict[object, bytes]()
    request, end = request_bytes("/"), time.monotonic() + seconds
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for _ in range(count):
            connection = stack.enter_context(Connection(port))
            connection.send(request)
            selector.register(connection, selectors.EVENT_READ)
        while time.monotonic() < end or len(workers) < count:
            for key, _ in selector.select(PATIENCE):
                connection = key.fileobj  # type: ignore[assignment]
                workers[connection] = worker = connection.read().body
                asked[worker] += 1
                connection.send(request)
    return Counter(workers.values()), asked


def _bursts(scale: Scale, trial: Trial) -> str:
    """The busiest worker against the mean."""
    workers, last = WORKERS[trial.server], 0.0
    with Running(trial.server, WORKER) as running:
        running.settle(workers, PATIENCE)
        for count in BURSTS:
            for _ in range(scale.amounts.bursts):
                connections, requests = burst(running.port, count, BURST_SECONDS)
                for what, found in (("connections", connections), ("requests", requests)):
                    last = max(found.values()) * workers / sum(found.values())
                    trial.figure(f"{what}, {count}", last, "×")
                # Its connections are closed before the next one.
                time.sleep(BURST_SECONDS / 4)
    return f"busiest of {workers} workers, requests of the last burst: {last:.2f} × the mean"


def _wakeups(scale: Scale, trial: Trial) -> str:
    """What a connection costs while all workers are idle: CPU, and how often workers sleep."""
    request, connections = request_bytes("/", [("Connection", "close")]), scale.amounts.connections
    with trial.running(HELLO) as running:
        running.settle(WORKERS[trial.server], PATIENCE)

        def ask(count: int) -> None:
            for _ in range(count):
                with Connection(running.port) as connection:
                    connection.ask(request)

        ask(connections // 10)
        before = running.processes()
        cpu, slept = resources.cpu_seconds(before), wakeups(before)
        ask(connections)
        cpu, slept = resources.cpu_seconds(before) - cpu, wakeups(before) - slept
    trial.figure("CPU", cpu / connections * 1e6, "µs")
    trial.figure("wake-ups", slept / connections)
    return f"{cpu / connections * 1e6:.1f} µs and {slept / connections:.1f} wake-ups a connection"


def _simulated(scale: Scale, trial: Trial) -> str:
    for load in (simulation.KEPT, simulation.COMPUTING):
        name = trial.server.name
        found = simulate(name, load, SIMULATED, scale.amounts.arrivals, trial.number)
        for what, value in found._asdict().items():
            trial.figure(f"{load}: {what}", value)
    return f"{found.woken:.1f} workers woken a connection"


EACH: dict[str, tuple[Callable[[Scale, Trial], str], Sequence[Server]]] = {
    "bursts": (_bursts, (SHARED[4], OWN[4], SHARED[16], OWN[16])),
    "wakeups": (_wakeups, (*SHARED.values(), OWN[64])),
    "simulated": (_simulated, WAYS),
}


def plan(lab: Lab, scale: Scale, servers: Sequence[Server], options: Namespace) -> list[Step]:
    """The experiments one after another, servers in turns."""
    steps = []
    for name in options.names:
        if name == "workers":
            steps += _workers(lab, [SHARED[one] for one in COUNTS[:2] if SHARED[one] in servers])
            continue
        run, known = EACH[name]
        own = lab.unpinned() if name == "bursts" else lab
        those = [one for one in known if one in servers]
        steps += engine.rounds(own, name, those, partial(run, scale))
    return steps


def _table(
    results: Results, name: str, title: str, figures: Sequence[tuple[str, Column]]
) -> Section:
    """A row for each server, a column for each figure."""
    servers = dict.fromkeys(one["server"] for one in results.figures if one["experiment"] == name)
    rows = [
        [server, *(results.figure(name, server, figure) for figure, _ in figures)]
        for server in servers
    ]
    columns = [Column("workers"), *(column for _, column in figures)]
    parts = [tables.table(f"balance-{name}", "", columns, rows)]
    return Section(title, parts=parts if rows else [])


def _scaled(results: Results) -> Section:
    """CPU for each request and requests/s, by page; two workers against one."""
    rows: list[list[Cell]] = []
    one, two = SHARED[1].name, SHARED[2].name
    own = results.experiment("workers")
    for scenario in (*SCENARIOS[PLACES[0]], *SCENARIOS[PLACES[1]]):
        if (name := scenario.name) in own.scenarios():
            samples = [one for one in own.samples if one["scenario"] == name]
            row: list[Cell] = [scenario.kind]
            for field in ("cpu_us", "rate"):
                row += [own.median(name, one, field), own.median(name, two, field)]
                row.append(own.ratio(name, two, one, field))
            row += [spread(one[who] for one in samples) for who in ("client_busy", "others_busy")]
            rows.append(row)
    cpu, rate = Column("CPU of a request, 1 worker", "µs", 1), Column("1 worker", "1/s")
    columns = [
        *(Column("page and cores of the server"), cpu, Column("2 workers", "µs", 1)),
        *(Column("2 to 1", "×", 2), rate, Column("2 workers", "1/s"), Column("2 to 1", "×", 2)),
        *(Column("wrk busy", "%", 0, 100), Column("other programs", "% of all cores", 0, 100)),
    ]
    note = (
        "16 connections that are kept. With all cores, wrk has to share the two cores, too; "
        "requests/s mean little where other programs kept them busy."
    )
    parts = [tables.table("balance-workers", "", columns, rows, note)]
    return Section("One worker and two", tables.lost(results), parts if rows else [])


def report(results: Results) -> list[Section]:
    """A table for each experiment that was made."""
    times = [
        (f"{what}, {count}", Column(f"{what} of {count}", "×", 2))
        for what in ("connections", "requests")
        for count in BURSTS
    ]
    kept, computing = simulation.KEPT, simulation.COMPUTING
    simulated = [
        (f"{kept}: busiest", Column("kept: busiest / mean", "×", 2)),
        (f"{kept}: woken", Column("woken", places=1)),
        (f"{computing}: busiest", Column("computing: busiest / mean", "×", 2)),
        (f"{computing}: woken", Column("woken", places=1)),
        (f"{computing}: waited", Column("p99 of the wait, requests", places=2)),
    ]
    cost = [("CPU", Column("CPU of a connection", "µs", 1))]
    cost += [("wake-ups", Column("wake-ups of a connection", places=1))]
    found = [
        _scaled(results),
        _table(results, "bursts", "The busiest worker against the mean", times),
        _table(results, "wakeups", "A connection while all workers are idle", cost),
        _table(results, "simulated", f"{SIMULATED} workers, simulated", simulated),
    ]
    found = [section for section in found if section.parts]
    how = method(__file__, seconds=BURST_SECONDS, workers=SIMULATED, simulation=simulation)
    return [*found, how] if found else []


STUDY = Study(
    NAME,
    "one worker and two, and how connections spread over up to 64",
    "",
    lambda: SERVERS,
    plan,
    report,
    experiments=("workers", *EACH),
    scales=scales(
        *(FULL, QUICK, TINY),
        bursts=(20, 5, 1),
        connections=(3_000, 500, 50),
        arrivals=(20_000, 5_000, 3_000),
    ),
    wrk=True,
)
