"""All clients, in the order of the tables."""

from __future__ import annotations

from functools import partial

from loadtests import programs
from loadtests.clients import locust, ours
from loadtests.clients.client import Client
from loadtests.clients.external import ab, h2load, httperf, wrk
from loadtests.clients.native import fetch

WORKERS = 2


def _nothing() -> str:
    return ""


CLIENTS = (
    Client(
        "ours serial",
        "#0b4f9e",
        _nothing,
        ours.version,
        ours.serial,
        "has one connection at a time, whatever is asked, and another for each request",
    ),
    Client(
        "ours threads",
        "#2ca6c4",
        _nothing,
        ours.version,
        ours.threads,
        "has a thread and a connection for each request",
    ),
    Client("fetch", "#14788f", fetch.missing, fetch.version, fetch.perform),
    Client(
        "wrk",
        "#c8452c",
        partial(programs.missing, "wrk"),
        partial(programs.version, "wrk"),
        wrk.perform,
        "corrects its latencies for coordinated omission",
    ),
    Client(
        "ab",
        "#e8843c",
        partial(programs.missing, "ab"),
        partial(programs.version, "ab"),
        ab.perform,
        "speaks HTTP/1.0",
    ),
    Client(
        "httperf",
        "#d9a514",
        partial(programs.missing, "httperf"),
        httperf.version,
        httperf.perform,
        "looks for answers without a pause, so that its core is always busy",
        spins=True,
    ),
    Client(
        "h2load",
        "#7a3e9d",
        partial(programs.missing, "h2load"),
        partial(programs.version, "h2load"),
        h2load.perform,
        "keeps its connections",
    ),
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
