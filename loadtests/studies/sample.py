"""Stored samples of traced runs, and the table cells made from them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from loadtests.clients.native import fetch
from loadtests.clients.native.fetch import Traced
from loadtests.errors import ServerFailure
from loadtests.measure import histogram, resources
from loadtests.servers.registry import Server
from loadtests.servers.running import Running
from loadtests.stats.results import Results, Spread, spread

ATTEMPTS = 20
WARM_REQUESTS, WARM_CONNECTIONS, WARM_SECONDS = 500, 100, 2.0


def warm(running: Running, target: str, core: int | None) -> None:
    """Requests before any is measured: some begin processes and load applications only now."""
    fetch.drive(
        running.port,
        WARM_SECONDS,
        WARM_CONNECTIONS,
        [[target]],
        requests=WARM_REQUESTS,
        keep=False,
        core=core,
    )


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


def described(
    study: str, scenario: str, number: int, server: Server, traced: Traced, cpu: float
) -> dict[str, Any]:
    """A sample of a study. Raises ServerFailure if nothing was answered."""
    trace, load = traced.trace, traced.load
    answers, pages = trace.answer(), trace.total()
    failed = trace.failed()
    if not pages:
        raise ServerFailure(f"{scenario}: no request was answered, {failed}")
    times, longest = histogram.record(pages), max(pages)
    seconds = max(trace.ended) / 1e6
    return {
        "experiment": study,
        "scenario": scenario,
        "server": server.name,
        "round": number,
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
        "client_busy": load.busy,
        "server_busy": cpu / seconds,
    }


def per_second(results: Results, scenario: str, server: str, field: str) -> Spread | None:
    """How many such times fit into a second: as the study of 2010 counts."""
    times = results.rounds(scenario, server, field).values()
    return spread(1e6 / value for value in times if value)


def failed(results: Results, scenario: str, servers: Sequence[str], *ignored: str) -> list[str]:
    """A sentence for each server of which requests failed; those of `ignored` kinds aside."""
    told = []
    for server in servers:
        counts: dict[str, int] = {}
        asked = 0
        for sample in results.samples:
            if (sample["scenario"], sample["server"]) == (scenario, server):
                asked += sample["requests"] + sample["failed"]
                for kind, count in sample["errors"].items():
                    if kind not in ignored:
                        counts[kind] = counts.get(kind, 0) + count
        if counts:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
            told.append(
                f"{server}, {scenario}: {sum(counts.values()):,} of {asked:,} requests failed "
                f"({kinds})."
            )
    return told
