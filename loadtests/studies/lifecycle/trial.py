"""A server under steady load, and the record of it: the common part of all experiments."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from loadtests.clients.steady.handle import Death, Fault, Load, State, unexplained
from loadtests.servers.application import Application
from loadtests.servers.registry.lifecycle import OperatedServer
from loadtests.servers.running import Running
from loadtests.store import without_paths
from loadtests.studies import engine
from loadtests.studies.engine import Lab

APPLICATION = Application("loadtests/apps", "operated")
EARLY, LATE = "after 2,000 requests", "after 20,000 requests"
"""When memory is looked at, in `preload`."""
SHOWN_FAULTS = 20
SHOWN_LINES = 12


@dataclass(frozen=True)
class Scale:
    """How much of everything: a round of an experiment, and rounds if nothing else is said."""

    rounds: dict[str, int]
    reloads: int = 20
    upgrades: int = 5
    seconds: float = 30
    """Of load, where it is not over when something is done."""
    kills: int = 20
    between: float = 1
    """Seconds from one kill to the next."""
    every: int = 1_000
    """Requests to one that hangs."""
    settle: float = 1.5
    """Seconds of load before something is done."""
    grace: float = 15
    """Seconds for old processes to end, after which the next thing is done all the same."""
    watched: float = 5
    """Seconds for which a reload that must fail is watched."""
    memory: Mapping[str, int] = field(default_factory=lambda: {EARLY: 2_000, LATE: 18_000})
    """Further requests before memory is looked at: garbage is collected late."""

    def round_count(self, experiment: str, lab: Lab) -> int:
        """How many rounds an experiment has."""
        return lab.rounds or self.rounds.get(experiment, 1)


FULL = Scale({"reload": 10, "upgrade": 10, "stop": 20, "preload": 5, "balance": 10, "kill": 2})
QUICK = Scale(
    {},
    reloads=5,
    upgrades=2,
    seconds=5,
    kills=4,
    every=200,
    settle=0.7,
    grace=5,
    watched=2.5,
    memory={EARLY: 400, LATE: 400},
)


class Trial:
    """One server in one round of an experiment: a server, a load, and what they show."""

    def __init__(self, lab: Lab, scale: Scale, experiment: str, number: int, one: OperatedServer):
        self.lab = lab
        self.scale = scale
        self.experiment = experiment
        self.number = number
        self.one = one
        self.server = one.server(experiment)

    def figure(self, name: str, value: float, unit: str = "") -> None:
        """Stores a figure."""
        engine.figure(self.lab, self.experiment, self.number, self.server, name, value, unit)

    def note(self, name: str, text: str) -> None:
        """Stores words: what a log said, for instance."""
        self.lab.store.add(
            "note",
            experiment=self.experiment,
            server=self.one.name,
            round=self.number,
            name=name,
            text=text,
        )

    @contextlib.contextmanager
    def running(self, application: Application = APPLICATION) -> Iterator[Running]:
        """The server, of version 0."""
        if self.number == 0:
            self.note("command", self.server.command.replace("~", " "))
        files = {"version": "0"}
        if self.one.configuration:
            files[self.one.configuration.name] = self.one.configuration.sound
        with Running(
            self.server,
            application,
            files=files,
            environ={"LOADTESTS_VERSION": "{folder}/version"},
            core=self.lab.server_core,
        ) as running:
            yield running

    @contextlib.contextmanager
    def loaded(self, **clients: int) -> Iterator[tuple[Running, Load]]:
        """The server under steady load, with further clients."""
        with (
            self.running() as running,
            Load(
                running.port,
                {**self.one.clients, **clients},
                every=self.scale.every,
                core=self.lab.client_core,
            ) as load,
        ):
            time.sleep(self.scale.settle)
            yield running, load

    def conclude(self, load: Load, *, deaths: Sequence[Death] = (), what: str = "") -> str:
        """Ends the load, stores what it has met, and tells it; `what` begins the names of figures.

        A connection that died with a killed process had to.
        """
        seconds = time.monotonic() - load.began
        state = load.end()
        faults = unexplained(state.faults, deaths)
        failed = sum(fault.requests for fault in faults)
        if state.failed > sum(fault.requests for fault in state.faults):
            # There are more than were told one by one, and nothing is known of the others.
            failed = state.failed
        figures = {
            "requests": (state.requests, ""),
            "requests/s": (state.requests / seconds, "/s"),
            "failed": (failed, ""),
            "workers that answered": (len(state.processes), ""),
            "connections closed while idle": (state.unlucky.get("idle connection closed", 0), ""),
            "p50": (state.p50, "s"),
            "p99": (state.p99, "s"),
            "longest": (state.longest, "s"),
        }
        for name, (value, unit) in figures.items():
            if value is not None:
                self.figure(f"{what}{name}", round(value, 6), unit)
        if deaths:
            self.figure("failed with a killed worker", state.failed - failed)
        self._store_faults(state, faults)
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in _by_kind(faults).items())
        return f"{state.requests:,} answered, {failed:,} failed{f' ({kinds})' if kinds else ''}"

    def _store_faults(self, state: State, faults: Sequence[Fault]) -> None:
        if faults:
            self.lab.store.add(
                "faults",
                experiment=self.experiment,
                server=self.one.name,
                round=self.number,
                kinds=_by_kind(faults),
                shown=[vars(fault) for fault in faults[:SHOWN_FAULTS]],
                unlucky=state.unlucky,
            )


def _by_kind(faults: Sequence[Fault]) -> dict[str, int]:
    kinds: dict[str, int] = {}
    for fault in faults:
        kinds[fault.kind] = kinds.get(fault.kind, 0) + fault.requests
    return kinds


def excerpt(running: Running, text: str, word: str) -> str:
    """The lines around the first one with a word; the last ones if there is none, or no word."""
    lines = without_paths(text.replace(str(running.folder), "FOLDER")).strip().splitlines()
    found = [number for number, line in enumerate(lines) if word and word in line]
    at = found[0] if found else len(lines) - 1
    first = max(0, at - SHOWN_LINES // 2)
    return "\n".join(lines[first : first + SHOWN_LINES])
