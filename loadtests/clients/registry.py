"""All clients of the lab, in the order in which reports list them."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from loadtests import programs
from loadtests.clients import external, locust, python_client
from loadtests.clients.load import Job, Load
from loadtests.clients.native import fetch

Drive = Callable[[Job, "int | None"], Load]


@dataclass(frozen=True)
class Client:
    """`missing` says why it cannot run, nothing if it can; `version` is what a report names.

    `drive` does a job on a core, or on all for None; it raises LabError if the client has no result
    or cannot do this. `note` is what a reader of its figures should know; one that `spins` takes
    all of its core however little it has to do.
    """

    name: str
    colour: str
    drive: Drive
    note: str = ""
    missing: Callable[[], str] = str
    version: Callable[[], str] = str
    spins: bool = False


WORKERS = 2
_PYTHON = f"Python {platform.python_version()}"
_LOCUST = locust.missing, locust.version


def _program(name: str, colour: str, drive: Drive, note: str = "", **more: Any) -> Client:
    """A program of the system."""
    more.setdefault("version", partial(programs.version, name))
    return Client(name, colour, drive, note, partial(programs.missing, name), **more)


CLIENTS = (
    Client(
        "ours serial",
        "#0b4f9e",
        partial(python_client.drive, way="series"),
        "has one connection at a time, whatever is asked, and another for each request",
        version=lambda: _PYTHON,
    ),
    Client(
        "ours threads",
        "#2ca6c4",
        partial(python_client.drive, way="threads"),
        "has a thread and a connection for each request",
        version=lambda: _PYTHON,
    ),
    Client("fetch", "#14788f", fetch.drive_job, missing=fetch.missing),
    _program("wrk", "#c8452c", external.wrk, "corrects its latencies for coordinated omission"),
    _program("ab", "#e8843c", external.ab, "speaks HTTP/1.0"),
    _program(
        "httperf",
        "#d9a514",
        external.httperf,
        "looks for answers without a pause, so that its core is always busy",
        version=external.httperf_version,
        spins=True,
    ),
    _program("h2load", "#7a3e9d", external.h2load, "keeps its connections"),
    Client("Locust", "#3f8f3f", locust.drive, "octets without heads", *_LOCUST),
    Client(
        f"Locust {WORKERS} workers",
        "#8fc98f",
        partial(locust.drive, workers=WORKERS),
        "octets without heads; master and workers share the core",
        *_LOCUST,
    ),
)
