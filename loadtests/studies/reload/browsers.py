"""A process of polling clients, seen from the lab."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from loadtests.clients.client_process import ClientProcess
from loadtests.studies.reload.author import Save


@dataclass(frozen=True)
class Asked:
    """A request of a client, when it began and ended by the monotonic clock, and what came of it.

    `versions` of the answer, or a `fault` of `clients.steady.connection.KINDS` with details.
    """

    client: str
    began: float
    ended: float
    versions: tuple[str, str] = ("", "")
    fault: str = ""
    what: str = ""


@dataclass(frozen=True)
class Told:
    """All that was asked, and what else was counted."""

    asked: list[Asked]
    counts: dict[str, int]


class Browsers(ClientProcess):
    """Clients of `loadtests.clients.steady.polling`, which ask until the block ends."""

    def __init__(self, port: int, clients: Mapping[str, int], core: int | None) -> None:
        arguments = [str(port), json.dumps(dict(clients))]
        super().__init__("clients", "loadtests.clients.steady.polling", arguments, core)

    def first(self, save: Save, seconds: float) -> float | None:
        """How long after a save its version was first told; None if it was not in this time."""
        at: float | None = self.ask(f"await {' '.join(save.versions)} {seconds}")
        return None if at is None else at - save.began

    def end(self) -> Told:
        """Let all finish what they have begun; what they were told."""
        told = self.ask("end")
        asked = []
        for client, began, ended, fault, first, second in told["asked"]:
            if fault:
                asked.append(Asked(client, began, ended, fault=fault, what=first))
            else:
                asked.append(Asked(client, began, ended, (first, second)))
        return Told(asked, told["counts"])
