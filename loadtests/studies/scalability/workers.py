"""Injectors that are workers of Locust, each with one user on one connection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from loadtests.clients.locust import swarm
from loadtests.clients.locust.injection import INJECTOR
from loadtests.errors import ServerFailure
from loadtests.studies.scalability.injection import Injected, Injector


def inject(
    address: str,
    port: int,
    pages: Sequence[str],
    count: int,
    requests: int,
    stagger: float,
    longest: float,
    seed: int,
    core: int | None,
) -> Injected:
    """So many injectors with so many requests each, who begin `stagger` seconds apart.

    Raises ServerFailure if a request failed, and LabError if they are not through after `longest`
    seconds.
    """
    plan = {
        "seconds": 0,
        "targets": list(pages),
        "requests": requests,
        "stagger": stagger,
        "seed": seed,
    }
    url = f"http://{address}:{port}"
    outcome = swarm.run([INJECTOR], plan, url, count, count, core, longest)
    for number, report in enumerate(outcome.reports, 1):
        failed = Counter(swarm.KINDS[kind] for kind in report.kinds if kind)
        if failed or len(report.ends) != requests:
            kinds = ", ".join(f"{n} × {kind}" for kind, n in failed.items()) or "too slow"
            right = len(report.ends) - failed.total()
            raise ServerFailure(
                f"injector {number} of {count}: {right} of {requests} requests answered ({kinds})"
            )
    first = min(report.ends[0] - report.times[0] / 1e3 for report in outcome.reports)
    injectors = sorted((_injector(one, first) for one in outcome.reports), key=_began)
    whole = max(one.ended for one in injectors)
    return Injected(injectors, outcome.cpu / whole)


def _began(one: Injector) -> float:
    return one.began


def _injector(report: swarm.Report, first: float) -> Injector:
    ends = [end - first for end in report.ends]
    began = ends[0] - report.times[0] / 1e3
    return Injector(began, ends[-1], ends, [time * 1e3 for time in report.times])
