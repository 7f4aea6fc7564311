"""Loads a running server once; times, rates and the CPU time of the server."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from statistics import fmean
from typing import Any

from loadtests.clients.connection import Connection
from loadtests.clients.native import fetch
from loadtests.clients.native.fetch import Traced
from loadtests.errors import ServerFailure
from loadtests.measure import histogram, resources
from loadtests.servers.running import Running
from loadtests.studies.engine import Lab

ATTEMPTS = 20
SETTLING, SETTLED_AT_MOST = 0.1, 3.0
"""Seconds within which a process ends that has said all, and for which it is waited."""
WARM_REQUESTS, WARM_CONNECTIONS, WARM_SECONDS = 500, 100, 2.0


def warm(running: Running, target: str, core: int | None) -> None:
    """Requests before any is measured: some begin processes and load applications only now."""
    load = (WARM_SECONDS, WARM_CONNECTIONS, [[running.at(target)]])
    fetch.drive(running.port, *load, requests=WARM_REQUESTS, keep=False, core=core)


def cpu_seconds(running: Running) -> float:
    """CPU time of a server so far, with that of its processes that have come and gone.

    Raises ServerFailure if it has died.
    """
    for _ in range(ATTEMPTS):
        try:
            processes = running.processes()
            return resources.cpu_seconds(processes) + resources.reaped_seconds(processes)
        except ServerFailure:
            # Some end processes when there is little to do; is the first one there?
            running.processes()
            time.sleep(0.01)
    raise ServerFailure("its processes end all the time")


def settled(running: Running) -> float:
    """CPU seconds of the server when the last process has ended that was started for a request.

    After SETTLED_AT_MOST it is that of those who are there. Raises ServerFailure if it has died.
    """
    deadline = time.monotonic() + SETTLED_AT_MOST
    before: list[int] = []
    while True:
        now = running.processes()
        try:
            spent = resources.cpu_seconds(now)
        except ServerFailure:
            now = []
        if now and (now == before or time.monotonic() > deadline):
            return spent
        before = now
        time.sleep(SETTLING)


def ask_often(running: Running, count: int, requests: Sequence[bytes] = ()) -> None:
    """Asks for `count` answers, on a new connection whenever the server has closed the last.

    `requests` are sent in turn; by default always that of the scenario.
    """
    requests = requests or [running.request]
    answers = 0
    while answers < count:
        before = answers
        with Connection(running.port) as connection, suppress(ServerFailure, OSError):
            while answers < count:
                connection.ask(requests[answers % len(requests)])
                answers += 1
        if answers == before:
            raise ServerFailure("a new connection got no answer")


def load(
    lab: Lab, running: Running, seconds: float, at_once: int, target: str, **how: Any
) -> tuple[Traced, float]:
    """What became of each request for a target, and the CPU seconds of the server for them."""
    before = cpu_seconds(running)
    visits, core = [[running.at(target)]], lab.client_core
    traced = fetch.traced(running.port, seconds, at_once, visits, core=core, **how)
    return traced, cpu_seconds(running) - before


def offer(
    lab: Lab, running: Running, seconds: float, rate: float, patience: float, target: str
) -> tuple[Traced, float]:
    """As `load`, of so many requests a second, from clients that leave without an answer."""
    # More than can be there, so that the run never stops for it.
    most = round(2 * rate * patience) + 100
    how = {"rate": rate, "most_unanswered": most, "give_up": patience, "patience": patience}
    return load(lab, running, seconds, 1, target, **how)


def lost(requests: int, answered: int, failed: Mapping[str, int]) -> str:
    """Words on requests of which not all were answered; empty if they were."""
    if answered == requests and not failed:
        return ""
    kinds = ", ".join(f"{count} × {kind}" for kind, count in failed.items()) or "too slow"
    return f"{answered} of {requests} requests answered ({kinds})"


def described(scenario: str, traced: Traced, cpu: float) -> dict[str, Any]:
    """Rates and times of a load. Raises ServerFailure if nothing was answered."""
    trace = traced.trace
    answers, pages = trace.answer(), trace.total()
    failed = trace.failed()
    if not pages:
        raise ServerFailure(f"{scenario}: no request was answered, {failed}")
    times, longest = histogram.record(pages), max(pages)
    seconds = max(trace.ended) / 1e6
    return {
        "scenario": scenario,
        "requests": len(pages),
        "failed": sum(failed.values()),
        "errors": failed,
        "seconds": seconds,
        "rate": len(pages) / seconds,
        "answer_us": fmean(answers),
        "mean_us": fmean(pages),
        "p50_us": histogram.quantile(times, 0.5, longest),
        "p99_us": histogram.quantile(times, 0.99, longest),
        "max_us": longest,
        "answer_times": histogram.encode(histogram.record(answers)),
        "page_times": histogram.encode(times),
        "cpu_us": cpu / len(pages) * 1e6,
        "client_busy": traced.load.busy,
        "server_busy": cpu / seconds,
    }
