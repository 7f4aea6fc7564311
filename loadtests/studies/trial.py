"""One server in one round of an experiment: what is stored of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from loadtests.measure import resources
from loadtests.servers.registry import Server
from loadtests.servers.running import Running
from loadtests.studies import engine
from loadtests.studies.engine import Lab, Step

if TYPE_CHECKING:
    from typing_extensions import Self

SHOWN = 20
"""Faults of a round that are stored with their details."""


@dataclass(frozen=True)
class Trial:
    """`number` is that of the round. Studies add how the server is started and loaded."""

    lab: Lab
    experiment: str
    number: int
    server: Server

    def step(self, run: Callable[[Self], str], of: str = "") -> Step:
        """The step in which `run` does this; `of` tells it from others of the same round."""
        number = self.number % self.lab.rounds + 1
        what = f"{self.experiment}{of}, round {number} of {self.lab.rounds}, {self.server.name}"
        return Step(self.server, what, partial(run, self))

    def figure(self, name: str, value: float, unit: str = "") -> None:
        """Stores a figure."""
        value = round(value, 6)
        engine.figure(self.lab, self.experiment, self.number, self.server, name, value, unit)

    def memory(self, running: Running, name: str) -> resources.Memory:
        """Stores the memory of all processes of a server; `name` has {} where it says of what."""
        used = resources.memory(running.processes())
        for kind in ("pss", "uss", "rss"):
            self.figure(name.format(kind), getattr(used, kind), "bytes")
        self.figure(name.format("processes"), used.processes)
        return used

    def note(self, name: str, text: str) -> None:
        """Stores words: what a log said, for instance."""
        self._add("note", name=name, text=text)

    def faults(
        self, kinds: Mapping[str, int], shown: Sequence[dict[str, Any]], **more: object
    ) -> None:
        """Stores what failed, if anything did: how many requests by kind, and the first of them."""
        if kinds:
            self._add("faults", kinds=kinds, shown=shown[:SHOWN], **more)

    def _add(self, record: str, **values: object) -> None:
        where = {"experiment": self.experiment, "server": self.server.name, "round": self.number}
        self.lab.store.add(record, **where, **values)
