"""The study `auto`: threads that follow the load, beside fixed numbers and other servers."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from statistics import median as middle

from loadtests.clients.native import fetch
from loadtests.measure import resources
from loadtests.measure.repeatedly import Repeatedly
from loadtests.reporting.model import MIB, Axis, Panels, Section, method
from loadtests.servers.application import Application
from loadtests.servers.registry import Server
from loadtests.servers.registry.studies import AUTO, FOLLOWS
from loadtests.servers.running import Running
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import comparison, sample, tables
from loadtests.studies.comparison import P99, PSS, RATE, Measure, median
from loadtests.studies.engine import Lab, Step, Trial, rounds
from loadtests.studies.study import FULL, QUICK, TINY, Scale, Study, scales

NAME, DAY = "auto", "auto-day"
LOADED = Application("loadtests/apps", "loaded")
CLIENTS = 48
HANDLERS = {
    "waits 1 ms": "computes=0.2&waits=1",
    "waits 10 ms": "computes=0.2&waits=10",
    "waits 100 ms": "computes=0.2&waits=100",
    "waits 1,000 ms": "computes=0.2&waits=1000",
    "computes 1 ms": "computes=1",
    "computes 5 ms": "computes=5",
    "computes 50 ms": "computes=50",
    "computes 5 ms and waits 60 ms": "computes=5&waits=60",
    "waits 20 ms with one of five connections": "computes=0.2&waits=20&pool=5",
}
"""Those that wait compute for 0.2 ms, too."""
WAITS, COMPUTES, BOTH = "waits 100 ms", "computes 5 ms", "computes 5 ms and waits 60 ms"
DAY_LONG: Sequence[tuple[int, str]] = (
    *((4, WAITS), (CLIENTS, WAITS), (CLIENTS, COMPUTES)),
    *((CLIENTS, BOTH), (CLIENTS, WAITS), (1, "waits 1 ms")),
)
"""Clients, and what they ask for."""
EVERY = 0.25
LEAVING = 1.2
"""Seconds after which no thread has a request any more whose client has left."""
SCALES = scales(
    *(FULL, QUICK, TINY),
    # Seconds in which a server may find its number, and those of a part of the day.
    before=(8.0, 5.0, 0.2),
    part=(20.0, 8.0, 0.4),
    handlers=(len(HANDLERS), len(HANDLERS), 2),
)


def _target(handler: str) -> str:
    return f"/?{HANDLERS[handler]}"


def _take(trial: Trial, before: float, handler: str) -> str:
    """A steady load, once the server has had time to find its number of threads."""
    target, lab = _target(handler), trial.lab
    with trial.running(LOADED, target) as running:
        visits = [[running.at(target)]]
        fetch.drive(running.port, before, CLIENTS, visits, core=lab.client_core)
        time.sleep(LEAVING)
        with Repeatedly(lambda: resources.threads(running.processes()), EVERY) as threads:
            traced, cpu = sample.load(lab, running, lab.seconds, CLIENTS, target, keep=True)
        used = resources.memory(running.processes())
    taken = sample.described(handler, traced, cpu) | used._asdict()
    taken["threads"] = middle(threads.looks)
    trial.sample(**taken)
    return f"{taken['rate']:,.0f}/s, p99 {taken['p99_us'] / 1e3:,.1f} ms, {taken['threads']:.0f}"


def _look(running: Running) -> tuple[float, int, int]:
    processes = running.processes()
    return time.monotonic(), resources.threads(processes), resources.memory(processes).pss


def _day(trial: Trial, seconds: float) -> str:
    """One part after the other, with threads, memory and answers in each second."""
    core, times = trial.lab.client_core, dict[int, list[int]]()
    with trial.running(LOADED) as running:
        began = time.monotonic()
        with Repeatedly(lambda: _look(running), 2 * EVERY) as looks:
            for clients, handler in DAY_LONG:
                visits = [[running.at(_target(handler))]]
                seen = fetch.traced(running.port, seconds, clients, visits, keep=True, core=core)
                trace = seen.trace
                for sent, ended in zip(trace.sent, trace.ended, strict=True):
                    second = int(trace.began + ended / 1e6 - began)
                    times.setdefault(second, []).append(ended - sent)
    answered = {second: len(own) for second, own in sorted(times.items())}
    p99 = ((second, sorted(times[second])[(n - 1) * 99 // 100]) for second, n in answered.items())
    trial.sample(
        scenario=DAY,
        requests=sum(answered.values()),
        errors={},
        answered=list(answered.items()),
        p99=list(p99),
        threads=[(round(at - began, 2), threads) for at, threads, _ in looks.looks],
        memory=[(round(at - began, 2), pss) for at, _, pss in looks.looks],
        part=seconds,
    )
    return f"{sum(answered.values()):,} answers"


def plan(lab: Lab, scale: Scale, chosen: Sequence[Server], options: Namespace) -> list[Step]:
    """All servers with each handler, and a day of those that have threads of ours."""
    steps: list[Step] = []
    if NAME in options.names:
        for handler in list(HANDLERS)[: scale.amounts.handlers]:
            take = partial(_take, before=scale.amounts.before, handler=handler)
            steps += rounds(lab, NAME, chosen, take, f" {handler}")
    if DAY in options.names:
        day = [one for one in chosen if one.ours]
        steps += rounds(lab, DAY, day, partial(_day, seconds=scale.amounts.part))
    return steps


MEASURES: Sequence[Measure] = (
    RATE,
    comparison.ratio("rate", lambda _: FOLLOWS.name, "requests, to auto"),
    P99,
    median("threads", "threads"),
    PSS,
)


def report(results: Results) -> list[Section]:
    """A section for each handler, and the day."""
    told = comparison.sections(
        results,
        *(
            (f"{NAME}-{number}", f"A handler that {handler}", {handler: ""}, MEASURES)
            for number, handler in enumerate(HANDLERS)
        ),
    )
    if days := [one for one in tables.latest(results.samples) if one["experiment"] == DAY]:
        told.append(_of_day(days))
    return told + comparison.ending(results, NAME, {}, (), method(__file__, clients=CLIENTS))


def _of_day(samples: Sequence[Record]) -> Section:
    shown = {server: own[0] for server, own in tables.by_server(samples).items()}
    panels = [
        tables.lines(
            *(f"{DAY}-{field}", title, Axis("time", "s", low=0), axis),
            {server: one[field] for server, one in shown.items()},
            scale,
        )
        for field, title, axis, scale in (
            ("answered", "Answers", Axis("answers", "/s", low=0), 1.0),
            ("p99", "p99 of each second", Axis("p99", "ms", log=True), 1e-3),
            ("threads", "Threads, of all processes", Axis("threads", low=0), 1.0),
            ("memory", "Memory (PSS)", Axis("memory", "MiB", low=0), MIB),
        )
    ]
    parts = "; ".join(f"{clients} clients, handler {handler}" for clients, handler in DAY_LONG)
    text = f"A part each {samples[0]['part']:g} s: {parts}."
    title = "A day in fast motion"
    return Section(title, [text], [Panels(DAY, title, panels)])


STUDY = Study(
    NAME,
    "threads that follow the load, beside fixed numbers and other servers",
    "",
    lambda: AUTO,
    plan,
    report,
    experiments=(NAME, DAY),
    given=True,
    scales=SCALES,
)
