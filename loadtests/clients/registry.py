"""All clients, in the order of the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from loadtests import programs
from loadtests.clients import asker, locust
from loadtests.clients.client import Client, Drive
from loadtests.clients.external import ab, h2load, httperf, wrk
from loadtests.clients.native import fetch

WORKERS = 2


def _program(
    name: str, colour: str, drive: Drive, note: str = "", version: Callable[[], str] | None = None
) -> Client:
    """A program of the system."""
    version = version or partial(programs.version, name)
    return Client(name, colour, partial(programs.missing, name), version, drive, note)


CLIENTS = (
    Client(
        "ours serial",
        "#0b4f9e",
        str,
        asker.version,
        asker.serial,
        "has one connection at a time, whatever is asked, and another for each request",
    ),
    Client(
        "ours threads",
        "#2ca6c4",
        str,
        asker.version,
        asker.threads,
        "has a thread and a connection for each request",
    ),
    Client("fetch", "#14788f", fetch.missing, fetch.version, fetch.perform),
    _program("wrk", "#c8452c", wrk.perform, "corrects its latencies for coordinated omission"),
    _program("ab", "#e8843c", ab.perform, "speaks HTTP/1.0"),
    replace(
        _program(
            "httperf",
            "#d9a514",
            httperf.perform,
            "looks for answers without a pause, so that its core is always busy",
            httperf.version,
        ),
        spins=True,
    ),
    _program("h2load", "#7a3e9d", h2load.perform, "keeps its connections"),
    Client(
        "Locust",
        "#3f8f3f",
        locust.missing,
        locust.version,
        locust.drive,
        "octets without heads",
    ),
    Client(
        f"Locust {WORKERS} workers",
        "#8fc98f",
        locust.missing,
        locust.version,
        partial(locust.drive, workers=WORKERS),
        "octets without heads; master and workers share the core",
    ),
)
