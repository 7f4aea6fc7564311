"""The study `overload`: more requests than can be answered, and short ones beside long ones."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from loadtests.clients.load import KINDS
from loadtests.clients.native import fetch
from loadtests.clients.native.fetch import RIGHT, Trace
from loadtests.errors import ServerFailure
from loadtests.reporting.model import Axis, Column, Lines, Panels, Section
from loadtests.servers.application import Application
from loadtests.servers.registry import Server
from loadtests.servers.registry.studies import EIGHT_THREADS, OVERLOADED
from loadtests.servers.running import Running
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import sample, tables
from loadtests.studies.bench import scenarios
from loadtests.studies.engine import Lab, Step, Trial, rounds
from loadtests.studies.study import QUICK, TINY, Scale, Study, scales

NAME = "overload"
PATIENCE = 1.0
"""Seconds after which a client that has no answer leaves."""
NORMAL = 0.8
TIMEOUT = KINDS.index("timeout")
REFUSED = 503


@dataclass(frozen=True)
class Handler:
    """What is asked for."""

    name: str
    title: str
    application: Application
    target: str


HANDLERS = (
    Handler("light", "the light page", scenarios.LIGHT, "/"),
    Handler("heavy", "a handler that computes for about 5 ms", scenarios.BURN, "/?200000"),
    Handler("waits", "a handler that waits for 10 ms", scenarios.SLOW, "/?seconds=0.01"),
)


def _take(trial: Trial, scale: Scale, handler: Handler) -> str:
    """The highest rate, and then each multiple of it on a server of its own."""
    lab = trial.lab
    # Some would still answer those of whom the highest rate was measured.
    with trial.running(handler.application, handler.target) as running:
        capacity = _capacity(lab, scale, handler, running)
    told = [f"{capacity:,.0f}/s"]
    for factor in scale.amounts.factors:
        with trial.running(handler.application, handler.target) as running:
            before = scale.amounts.before * until_noticed(factor)
            seconds, rate = before + lab.seconds, capacity * factor
            found, cpu = sample.offer(lab, running, seconds, rate, PATIENCE, handler.target)
        taken = counted(found.trace, before)
        taken |= {
            "client_busy": found.load.busy,
            "server_busy": cpu / seconds,
            "scenario": f"{handler.name} × {factor:g}",
            "handler": handler.name,
            "factor": factor,
            "capacity": capacity,
            "offered": taken["asked"] / lab.seconds,
            "rate": taken["requests"] / lab.seconds,
        }
        trial.sample(**taken)
        told.append(f"× {factor:g}: {taken['rate']:,.0f}/s")
    return ", ".join(told)


def _capacity(lab: Lab, scale: Scale, handler: Handler, running: Running) -> float:
    """Requests per second, each on a connection of its own, of clients that wait for answers."""
    visits, core = [[running.at(handler.target)]], lab.client_core
    # One after the other: a client that has left leaves a request behind.
    fetch.drive(running.port, 1.0, 1, visits, requests=50, core=core)
    # Some are slower with many at once, and those without limits quicker.
    rate = max(
        fetch.drive(running.port, scale.amounts.closed, some, visits, keep=False, core=core).rate
        for some in scale.amounts.connections
    )
    if not rate:
        raise ServerFailure(f"{handler.name}: no request was answered")
    return rate


def until_noticed(factor: float) -> float:
    """Seconds after which a server can know that clients leave, and some more.

    Its queue is as long as their patience only then, and those that have left come to their turn.
    """
    return PATIENCE * (1.5 + 2 / (factor - 1)) if factor > 1 else 2 * PATIENCE


def counted(trace: Trace, first: float) -> dict[str, Any]:
    """Counts the requests that were to begin after so many seconds, and the times of answers."""
    times: list[int] = []
    counts = {"asked": 0, "refused": 0, "left": 0, "failed": 0}
    for intended, ended, kind, status in zip(
        trace.intended, trace.ended, trace.kind, trace.status, strict=True
    ):
        if intended < first * 1e6:
            continue
        counts["asked"] += 1
        if kind == RIGHT:
            # The client may have looked for it too late to leave before.
            if ended - intended <= PATIENCE * 1e6:
                times.append(ended - intended)
            else:
                counts["left"] += 1
        elif kind == TIMEOUT:
            counts["left"] += 1
        else:
            counts["refused" if status == REFUSED else "failed"] += 1
    times.sort()
    return {
        **counts,
        "requests": len(times),
        "errors": {"failed": counts["failed"]} if counts["failed"] else {},
        # Without an answer there is none that was quick.
        **({"p99_us": times[(len(times) - 1) * 99 // 100]} if times else {}),
    }


ABOUT = (
    "What happens if more requests arrive than a server can answer? First a few clients, then "
    "many, wait for each response before they send the next request. Then requests arrive evenly "
    "at multiples of the rate that these clients reach, whether or not earlier ones are "
    "answered, each on a connection of its own. A client without a response "
    f"after {PATIENCE:g} s leaves. The tables show the responses within that time, after some "
    "seconds of load, as a share of the highest rate of the server in any test. Server and "
    "client have one core each."
)
BUSY_CLIENT = (
    "Requests that cost a server almost nothing keep the client as busy as a quick server. The "
    "column “offered” shows how many requests the client made, in multiples of the highest "
    "rate."
)


def of_highest(samples: Sequence[Record]) -> list[Record]:
    """The samples with shares and offers as multiples of the highest rate of each server."""

    def place(one: Record) -> tuple[Any, ...]:
        return one["run"], one["server"], one["handler"], one["round"]

    highest: dict[tuple[Any, ...], float] = {}
    for one in samples:
        rate = max(one["capacity"], one["rate"])
        highest[place(one)] = max(rate, highest.get(place(one), rate))
    told = []
    for one in samples:
        best = highest[place(one)]
        shares = {"share": one["rate"] / best, "offered": one["offered"] / best}
        told.append({**one, **shares, "highest": best})
    return told


def _section(handler: Handler, samples: Sequence[Record], about: Sequence[str]) -> Section:
    factors = sorted({one["factor"] for one in samples})
    most = factors[-1]

    def at(factor: float, field: str) -> tables.Value:
        return tables.where("factor", factor, field)

    shares = [(Column(f"in time at {one:g} ×", "%", 0, 100), at(one, "share")) for one in factors]
    late = [(Column(f"p99 at {one:g} ×", "ms", 0, 1e-3), at(one, "p99_us")) for one in factors]
    table = tables.compared(
        f"{NAME}-{handler.name}",
        f"Answers within {PATIENCE:g} s: {handler.title}",
        samples,
        [
            (Column("highest rate", "/s"), "highest"),
            *shares,
            *late,
            (Column(f"503 at {most:g} ×"), at(most, "refused")),
            (Column(f"left at {most:g} ×"), at(most, "left")),
            (Column("offered", "×", 1), at(most, "offered")),
        ],
        f"in time at {most:g} ×",
        highest=True,
        note="p99 is that of the answers in time.",
    )
    said = tables.answer(
        f"Share of the highest rate answered in time at {most:g} times that rate, with "
        f"{handler.title}",
        tables.spreads(samples, at(most, "share"), 100),
        "%",
        highest=True,
    )
    text = [*about, *tables.saturated(samples), *tables.failed(samples, handler.name)]
    return Section(f"Overload: {handler.title}", text, [_figure(handler, samples), table], said)


def _figure(handler: Handler, samples: Sequence[Record]) -> Panels:
    def panel(field: str, title: str, axis: Axis, scale: float) -> Lines:
        found = {
            server: tables.along(own, field, "factor").items()
            for server, own in tables.by_server(samples).items()
        }
        x = Axis("requests, as a multiple of the highest rate", low=0)
        name = f"{NAME}-{handler.name}-{field}"
        return tables.lines(name, title, x, axis, found, scale, marks=True)

    share = Axis("of the highest rate", "%", low=0)
    late = Axis("p99 of the answers in time", "ms", log=True)
    return Panels(
        f"{NAME}-{handler.name}-figure",
        f"Overload: {handler.title}",
        [panel("share", "Answers in time", share, 100), panel("p99_us", "Their p99", late, 1e-3)],
        "A level line is a server that overload does not slow down.",
    )


FAIR = "fair"
COMPUTING = 7
"""Clients of the handler that computes: each server has eight threads."""
LONG, SHORT = "/?4200000", "/?1"
LONG_SECONDS = 0.1
"""About what it takes where nothing else is computed."""
PAUSE = 0.01
"""Seconds between two short requests."""
BEFORE = 1.5
"""Seconds for which only the computing ones are there."""


def _fair(trial: Trial) -> str:
    seconds, core = 3 * trial.lab.seconds, trial.lab.client_core
    with trial.running(scenarios.BURN, SHORT) as running, ThreadPoolExecutor(1) as beside:
        sample.warm(running, SHORT, core)
        # All eight threads have run by then.
        lasts, visits = BEFORE + seconds, [[running.at(LONG)]]
        computing = beside.submit(
            fetch.traced, running.port, lasts, COMPUTING, visits, keep=True, core=core
        )
        fetch.drive(running.port, BEFORE, 1, [[running.at(SHORT)]], core=core)
        traced, cpu = sample.load(trial.lab, running, seconds, 1, SHORT, keep=True, think=PAUSE)
        computed = len(computing.result().trace.total()) / lasts
    taken = sample.described(FAIR, traced, cpu) | {"computed": computed}
    trial.sample(**taken)
    return f"p99 {taken['p99_us'] / 1e3:,.1f} ms, computed {computed:.1f}/s"


FAIR_VALUES = (
    (Column("p99", "ms", 1, 1e-3), "p99_us"),
    (Column("median", "ms", 1, 1e-3), "p50_us"),
    (Column("mean", "ms", 1, 1e-3), "mean_us"),
    (Column("short requests"), "requests"),
    (Column("long requests answered", "/s", 1), "computed"),
)


def fair_report(samples: Sequence[Record]) -> list[Section]:
    """Who answers short requests soonest."""
    if not samples:
        return []
    found = tables.spreads(samples, "p99_us", 1e-3)
    figure = tables.bars(
        f"{FAIR}-bars",
        "Short requests beside seven that compute",
        Axis("time of a short request", "ms", low=0),
        {"median": tables.spreads(samples, "p50_us", 1e-3), "p99": found},
        subtitle="shorter is better",
    )
    table = tables.compared(
        FAIR, "Short requests beside seven that compute", samples, FAIR_VALUES, "p99"
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
            [figure, *tables.percentiles(FAIR, samples, "page_times"), table],
            tables.answer("p99 of a short request", found, "ms"),
        )
    ]


SCALES = scales(
    *(Scale("full", 0, 2.0, each={FAIR: 3}), QUICK, TINY),
    factors=((NORMAL, 1.5, 2.0, 5.0), (NORMAL, 2.0), (NORMAL, 2.0)),
    # The share of the time before requests count.
    before=(1.0, 1.0, 0.05),
    # Seconds in which the highest rate is measured.
    closed=(1.5, 1.0, 0.5),
    connections=((16, 500), (16, 500), (8,)),
)


def servers() -> list[Server]:
    """Those of both experiments, each once."""
    return list(dict.fromkeys((*OVERLOADED, *EIGHT_THREADS)))


def plan(lab: Lab, scale: Scale, chosen: Sequence[Server], options: Namespace) -> list[Step]:
    """The steps of the experiments that were chosen."""
    steps: list[Step] = []
    for name, known in ((NAME, OVERLOADED), (FAIR, EIGHT_THREADS)):
        if name in options.names:
            own = replace(lab, rounds=scale.rounds_of(name))
            those = [one for one in chosen if one in known or one.given]
            # Every handler at each multiple of a server's highest rate.
            for handler in HANDLERS if name == NAME else ():
                take = partial(_take, scale=scale, handler=handler)
                steps += rounds(own, name, those, take, f" {handler.name}")
            if name == FAIR:
                steps += rounds(own, name, those, _fair)
    return steps


def report(results: Results) -> list[Section]:
    """A section for each handler, and one for short requests beside long ones."""
    found = tables.by(tables.latest(results.samples), "experiment")
    told: list[Section] = []
    measured = tables.by(of_highest(found.get(NAME, [])), "handler")
    for handler in HANDLERS:
        if own := measured.get(handler.name):
            told.append(_section(handler, own, [] if told else [ABOUT, BUSY_CLIENT]))
    return told + fair_report(found.get(FAIR, []))


STUDY = Study(
    NAME,
    "more requests than can be answered, from clients that leave; short requests beside long ones",
    "",
    servers,
    plan,
    report,
    experiments=(NAME, FAIR),
    given=True,
    scales=SCALES,
)
