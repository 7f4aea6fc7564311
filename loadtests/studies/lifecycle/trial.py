"""A server under steady load, and the record of it: the common part of all experiments."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from loadtests.clients.steady.handle import Death, SteadyClients, unexplained
from loadtests.servers.application import Application
from loadtests.servers.registry.lifecycle import OperatedServer
from loadtests.servers.running import Running
from loadtests.store import without_paths
from loadtests.studies import study, trial

APPLICATION = Application("loadtests/apps", "operated")
EARLY, LATE = "after 2,000 requests", "after 20,000 requests"
"""When memory is looked at, in `preload`."""
SHOWN_LINES = 12


@dataclass(frozen=True)
class Scale(study.Scale):
    """How much of everything in a round. `seconds` are of load that nothing else ends."""

    rounds: int = 0
    seconds: float = 30
    reloads: int = 20
    upgrades: int = 5
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


FULL = Scale(
    "full",
    each={"reload": 10, "upgrade": 10, "stop": 20, "preload": 5, "balance": 10, "kill": 2},
)
QUICK = Scale(
    "quick",
    seconds=5,
    reloads=5,
    upgrades=2,
    kills=4,
    every=200,
    settle=0.7,
    grace=5,
    watched=2.5,
    memory={EARLY: 400, LATE: 400},
)
TINY = Scale(
    "tiny",
    seconds=1,
    reloads=2,
    upgrades=1,
    kills=2,
    between=0.7,
    every=40,
    settle=0.3,
    watched=0.7,
    memory={EARLY: 100, LATE: 100},
)


@dataclass(frozen=True)
class Trial(trial.Trial):
    """One server in one round of an experiment: a server, a load, and what they show."""

    scale: Scale
    one: OperatedServer

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
    def loaded(self, **clients: int) -> Iterator[tuple[Running, SteadyClients]]:
        """The server under steady load, with further clients."""
        with (
            self.running() as running,
            SteadyClients(
                running.port,
                {**self.one.clients, **clients},
                every=self.scale.every,
                core=self.lab.client_core,
            ) as load,
        ):
            time.sleep(self.scale.settle)
            yield running, load

    def conclude(self, load: SteadyClients, *, deaths: Sequence[Death] = (), what: str = "") -> str:
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
                self.figure(f"{what}{name}", value, unit)
        if deaths:
            self.figure("failed with a killed worker", state.failed - failed)
        kinds = Counter[str]()
        for fault in faults:
            kinds[fault.kind] += fault.requests
        self.faults(kinds, [vars(fault) for fault in faults], unlucky=state.unlucky)
        told = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        return f"{state.requests:,} answered, {failed:,} failed{f' ({told})' if told else ''}"


def excerpt(running: Running, text: str, word: str) -> str:
    """The lines around the first one with a word; the last ones if there is none, or no word."""
    lines = without_paths(text.replace(str(running.folder), "FOLDER")).strip().splitlines()
    found = [number for number, line in enumerate(lines) if word and word in line]
    at = found[0] if found else len(lines) - 1
    first = max(0, at - SHOWN_LINES // 2)
    return "\n".join(lines[first : first + SHOWN_LINES])
