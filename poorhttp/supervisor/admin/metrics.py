"""Figures for Prometheus, in its text format (version 0.0.4).

Nothing is counted for them in a request beyond what a worker counts anyway, in memory that it
shares with the main process (`core/reactor/src/control/counters.rs`).
"""

from __future__ import annotations

from poorhttp.config.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from poorhttp.supervisor.generations import Generations
    from poorhttp.supervisor.worker_pool import WorkerPool

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Where a worker has as many hands as this; in other modes as many as `threads`, or nobody knows.
SINGLE_HANDED = ("single", "forking")


class Family:
    """A metric, and what it is of each service."""

    def __init__(self, name: str, kind: str, text: str) -> None:
        self.name = name
        self.lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]

    def add(self, value: float, **labels: str) -> None:
        """Add a sample; labels that are empty are left out."""
        known = ",".join(f'{name}="{text}"' for name, text in labels.items() if text)
        self.lines.append(f"{self.name}{f'{{{known}}}' if known else ''} {value:.15g}")


def capacity(pool: WorkerPool) -> int | None:
    """Return how many requests its workers can have in hand; `None`: there is no such number."""
    mode = pool.settings.mode
    if mode in SINGLE_HANDED:
        return pool.count
    return pool.count * pool.settings.threads if mode == "threading" else None


def text(generations: Generations, *, ready: bool, now: float) -> str:
    """Return all of them."""
    gauge, counter = "gauge", "counter"
    info = Family("poorhttp_info", gauge, "The version that runs.")
    info.add(1, version=VERSION)
    is_ready = Family(
        "poorhttp_ready", gauge, "1 while more clients should come, as /-/ready says."
    )
    is_ready.add(ready)
    wanted = Family("poorhttp_workers_wanted", gauge, "Workers that there should be.")
    alive = Family("poorhttp_workers_alive", gauge, "Workers that serve, and will go on.")
    answering = Family("poorhttp_workers_answering", gauge, "Those of them that answer when asked.")
    in_hand = Family("poorhttp_requests_in_hand", gauge, "Requests that the application has.")
    most = Family("poorhttp_capacity", gauge, "Requests that it can have at the same time.")
    used = Family("poorhttp_utilization", gauge, "Requests in hand by capacity, from 0 to 1.")
    connections = Family("poorhttp_connections", gauge, "Connections that are open.")
    requests = Family("poorhttp_requests_total", counter, "Requests that have begun.")
    responses = Family("poorhttp_responses_total", counter, "Answers, by the kind of their status.")
    restarts = Family(
        "poorhttp_worker_restarts_total",
        counter,
        "Workers that were replaced, because they died or were worn (max_requests and the like).",
    )
    for pool in generations.serving:
        service = pool.settings.service
        begun, has, are_open, answers = generations.counts(service)
        wanted.add(pool.count, service=service)
        alive.add(pool.serving, service=service)
        answering.add(pool.answering(now), service=service)
        in_hand.add(has, service=service)
        if (hands := capacity(pool)) is not None:
            most.add(hands, service=service)
            # For a moment there are two pools, or workers that finish beside those that begin.
            used.add(min(1.0, has / hands), service=service)
        connections.add(are_open, service=service)
        requests.add(begun, service=service)
        for kind, number in enumerate(answers[1:], 2):
            responses.add(number, service=service, code=f"{kind}xx")
        restarts.add(pool.totals.died, service=service, reason="died")
        restarts.add(pool.totals.worn, service=service, reason="worn")
    families = [info, is_ready, wanted, alive, answering, in_hand, most, used, connections]
    return _together([*families, requests, responses, restarts])


def _together(families: Iterable[Family]) -> str:
    # One without samples says nothing.
    lines = [line for family in families if len(family.lines) > 2 for line in family.lines]
    return "\n".join(lines) + "\n"
