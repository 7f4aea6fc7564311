"""Medians, spreads and ratios over stored records."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from loadtests.measure.disturbance import Disturbance, told
from loadtests.servers.registry import SERVERS
from loadtests.store import Record

Round = tuple[str, str, int]
"""Run, experiment and number: values of one round were measured minutes, not hours, apart."""


class Spread(NamedTuple):
    """A median over rounds with the lowest and the highest of them."""

    median: float
    low: float
    high: float
    rounds: int


def spread(values: Iterable[float]) -> Spread | None:
    """The spread of these values; None if there are none."""
    known = sorted(values)
    if not known:
        return None
    return Spread(statistics.median(known), known[0], known[-1], len(known))


def study_of(run: Record) -> str:
    """The study of a description of a run; in those of before, it is the command."""
    command = str(run.get("command", "")).removeprefix("python -m loadtests ")
    command = command.removeprefix("poorlab ")
    return str(run.get("study") or command.partition(" ")[0])


class Results:
    """The records of one or more files."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        self.runs = self._of_kind("run")
        self.samples = self._of_kind("sample")
        self.figures = self._of_kind("figure")
        self.missing = self._of_kind("missing")
        self.failures = self._of_kind("failure")
        self.done = self._of_kind("done")
        self.notes = self._of_kind("note")
        self.faults = self._of_kind("faults")

    def _of_kind(self, kind: str) -> list[Record]:
        return [record for record in self.records if record["record"] == kind]

    def experiment(self, *names: str) -> Results:
        """The same with the samples and figures of some experiments only.

        Where the first is a study, with its own runs and failures, too.
        """
        values = [one for one in (*self.samples, *self.figures) if one["experiment"] in names]
        of_study = (*self.runs, *self.missing, *self.failures)
        return Results([*values, *(o for o in of_study if o.get("study", names[0]) == names[0])])

    def of_study(self, name: str, experiments: Sequence[str]) -> Results:
        """The records of a study, or of its parts `experiments`.

        Parts of several studies may have the same name: a record belongs to the study that it
        names, or to one of its run.
        """
        others = {run["run"] for run in self.runs}
        others -= {run["run"] for run in self.runs if study_of(run) == name}
        return Results(
            [
                one
                for one in self.records
                if one.get("study", name) == name
                and one["run"] not in others
                and one.get("experiment", name) in (name, *experiments)
            ]
        )

    def disturbed(self) -> str:
        """What others used of the machine, in words, if that was too much in most of the steps."""
        steps = [Disturbance(**one["machine"]) for one in self.done if "machine" in one]
        return told(steps) if 2 * sum(one.disturbs for one in steps) > len(steps) else ""

    def __add__(self, other: Results) -> Results:
        return Results([*self.records, *other.records])

    def scenarios(self) -> list[str]:
        """The names of the scenarios measured, in order of appearance."""
        return list(dict.fromkeys(sample["scenario"] for sample in self.samples))

    def servers(self, scenario: str) -> list[str]:
        """The names of the servers measured in a scenario."""
        return list(dict.fromkeys(s["server"] for s in self.samples if s["scenario"] == scenario))

    def rounds(self, scenario: str, server: str, field: str) -> dict[Round, float]:
        """One field of every sample of a server in a scenario."""
        return {
            (s["run"], s["experiment"], s["round"]): float(s[field])
            for s in self.samples
            if s["scenario"] == scenario and s["server"] == server and field in s
        }

    def median(self, scenario: str, server: str, field: str) -> Spread | None:
        return spread(self.rounds(scenario, server, field).values())

    def ratio(self, scenario: str, server: str, against: str, field: str) -> Spread | None:
        """Server to server, formed within each round and only then made a median."""
        ours = self.rounds(scenario, server, field)
        theirs = self.rounds(scenario, against, field)
        return spread(ours[key] / theirs[key] for key in ours.keys() & theirs.keys() if theirs[key])

    def best_peer(self, scenario: str, field: str, *, highest: bool = False) -> str | None:
        """The peer with the best median of a field in a scenario."""
        peers = {server.name for server in SERVERS if server.peer}
        medians = {
            name: found.median
            for name in self.servers(scenario)
            if name in peers and (found := self.median(scenario, name, field)) is not None
        }
        return (max if highest else min)(medians, key=medians.__getitem__, default=None)

    def values(self, experiment: str, server: str, *names: str) -> list[float]:
        """All values of a server's figures of these names."""
        return [value for of in self._by_round(experiment, server, names).values() for value in of]

    def figure(self, experiment: str, server: str, name: str) -> Spread | None:
        return spread(self.values(experiment, server, name))

    def _by_round(
        self, experiment: str, server: str, names: Sequence[str]
    ) -> dict[Round, list[float]]:
        found: dict[Round, list[float]] = {}
        for f in self.figures:
            if (f["experiment"], f["server"]) == (experiment, server) and f["name"] in names:
                found.setdefault((f["run"], experiment, f["round"]), []).append(float(f["value"]))
        return found

    def figure_ratio(
        self, experiment: str, server: str, against: str, *names: str
    ) -> Spread | None:
        """Server to server, the medians of figures within each round."""
        ours = self._by_round(experiment, server, names)
        theirs = self._by_round(experiment, against, names)
        return spread(
            statistics.median(ours[key]) / statistics.median(theirs[key])
            for key in ours.keys() & theirs.keys()
        )
