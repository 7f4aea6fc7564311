"""One server in one round of an experiment: what is stored of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadtests.servers.registry import Server
from loadtests.studies import engine
from loadtests.studies.engine import Lab

SHOWN = 20
"""Faults of a round that are stored with their details."""


@dataclass(frozen=True)
class Trial:
    """`number` is that of the round. Studies add how the server is started and loaded."""

    lab: Lab
    experiment: str
    number: int
    server: Server

    def figure(self, name: str, value: float, unit: str = "") -> None:
        """Stores a figure."""
        value = round(value, 6)
        engine.figure(self.lab, self.experiment, self.number, self.server, name, value, unit)

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
        self.lab.store.add(
            record,
            experiment=self.experiment,
            server=self.server.name,
            round=self.number,
            **values,
        )
