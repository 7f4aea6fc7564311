"""The clients until all of them have one face."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from loadtests.clients import fetch, wrk
from loadtests.clients.load import Load


@dataclass(frozen=True)
class Job:
    port: int
    seconds: float
    connections: int


class Client(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def colour(self) -> str: ...
    def missing(self) -> str: ...
    def version(self) -> str: ...
    def drive(self, job: Job, core: int | None) -> Load: ...


class Wrk:
    name = "wrk"
    colour = "#0b4f9e"

    def missing(self) -> str:
        return ""

    def version(self) -> str:
        return wrk.version()

    def drive(self, job: Job, core: int | None) -> Load:
        return wrk.drive(job.port, job.seconds, job.connections, core=core)


class Fetch:
    name = "fetch"
    colour = "#c8452c"

    def missing(self) -> str:
        return ""

    def version(self) -> str:
        return "ours"

    def drive(self, job: Job, core: int | None) -> Load:
        return fetch.drive(job.port, job.seconds, job.connections, [["/"]], keep=False, core=core)


CLIENTS: Sequence[Client] = (Wrk(), Fetch())
