"""The experiments `develop`: files are saved. A step is one server in one round."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.measure.waiting import wait_until
from loadtests.servers.projects import DJANGO, FLASK, HELLO, KINDS, LARGE, MAIN, SUB, Kind, made
from loadtests.servers.registry.reload import MODES, OURS, SERVE, SERVERS, ReloadingServer
from loadtests.servers.running import Running
from loadtests.store import without_paths
from loadtests.studies import engine, study, trial
from loadtests.studies.bench.experiments import ask_often
from loadtests.studies.engine import Lab, Step
from loadtests.studies.reload.author import BOTH, Author, Save
from loadtests.studies.reload.browsers import Browsers
from loadtests.studies.reload.judgement import judge

LIMIT = 10.0
"""Seconds after which a save counts as never answered."""
PERIOD = 1.0
"""Seconds between two looks of those who poll."""
QUIET = 20.0
"""Seconds in which a server must have become quiet after its start."""
NEVER = "never answered"
STALE = "stale"
TWO = {"once": 1, "kept": 1}
"""Clients while the time is taken: one with a connection for each request, one that keeps its."""
ALL = {"once": 2, "kept": 2, "slow": 1, "posting": 1, "page": 1}
"""Clients while faults are looked for."""
NOT_WAITED = 0.2
"""Share of saves in `saves` which the next one follows without a wait for their version."""
BURST = 5
BETWEEN = 0.18
"""Saves of a burst in `quick`, and seconds from one to the next: all are within one second."""
WHEN = AT_START, LATER = "at start", "after saves"
LOGGED = 200
"""Last lines of what a server said that are stored if something failed."""
REQUESTS = 100
"""Requests before memory is looked at."""


@dataclass(frozen=True)
class Scale(study.Scale):
    """How much of everything in a round. `seconds` are those for which CPU time is looked at."""

    rounds: int = 0
    seconds: float = 15
    saves: int = 10
    many: int = 100
    bursts: int = 5
    remembered: int = 10
    """Saves before memory is looked at again."""


FULL = Scale("full", each={**dict.fromkeys(KINDS, 3), "saves": 2, "memory": 3})
QUICK = Scale("quick", seconds=4, saves=4, many=20, bursts=2, remembered=3)
TINY = Scale("tiny", seconds=0.3, saves=2, many=10, bursts=1, remembered=1)


@dataclass(frozen=True)
class Trial(trial.Trial):
    """One server with one project in one round of an experiment."""

    scale: Scale
    one: ReloadingServer
    kind: Kind

    @contextlib.contextmanager
    def running(self) -> Iterator[tuple[Running, Author]]:
        """The server with a new project, when both have come to rest."""
        with made(self.kind) as project:
            if self.number == 0:
                self.note("command", self.server.command.replace("~", " "))
            environ = self.one.environ(self.kind, str(project.path))
            with Running(
                self.server, project, core=self.lab.server_core, environ=environ
            ) as running:
                rest(running)
                yield running, Author(project)

    @contextlib.contextmanager
    def browsed(self, clients: Mapping[str, int]) -> Iterator[tuple[Author, Browsers]]:
        """The same while clients ask; what they were told is judged and stored at the end."""
        with self.running() as (running, author):
            with Browsers(running.port, clients, self.lab.client_core) as browsers:
                time.sleep(0.2)
                yield author, browsers
                told = browsers.end()
            # Raises ServerFailure if it has died.
            running.processes()
            said = without_paths(running.output().replace(str(running.application.path), "."))
        found = judge(author.saves, told.asked)
        self.figure("saves", len(author.saves) - 1)
        self.figure("requests", found.requests)
        self.figure("failed", found.failed)
        self.figure("longest request", found.longest, "s")
        for kind, count in found.kinds.items():
            self.figure(f"failed: {kind}", count)
        for what, count in told.counts.items():
            self.figure(what, count)
        self.faults(found.kinds, found.shown)
        if found.failed:
            self.note("log", "\n".join(said.splitlines()[-LOGGED:]))

    def random(self) -> Random:
        """For pauses, the same ones in every run."""
        return Random(f"{self.experiment} {self.one.name} {self.number}")


def rest(running: Running) -> None:
    """Waits until the server does nothing any more: it watches, and has imported what it wants."""
    if not wait_until(running.is_quiet, QUIET, 0):
        raise ServerFailure(f"it is not quiet {QUIET:.0f} s after its first answer")
    time.sleep(0.5)


def save_to_answer(trial: Trial) -> str:
    """From each save to the first answer of its version."""
    random = trial.random()
    taken = []
    never = 0
    with trial.browsed(TWO) as (author, browsers):
        for number in range(trial.scale.saves):
            # Who polls is met at any moment between two of its looks.
            time.sleep(trial.one.settles + random.random() * (PERIOD if trial.one.polls else 0.3))
            what = SUB if number % 2 else MAIN
            seconds = browsers.first(author.save(what), LIMIT)
            if seconds is None:
                never += 1
                continue
            trial.figure(f"seconds, {what}", seconds, "s")
            taken.append(seconds)
        time.sleep(0.2)
    trial.figure(NEVER, never)
    if not taken:
        raise ServerFailure(f"no version was answered within {LIMIT:.0f} s of its save")
    taken.sort()
    return f"{taken[len(taken) // 2] * 1e3:.0f} ms, worst {taken[-1] * 1e3:.0f} ms" + (
        f", {never} never" if never else ""
    )


def saves(trial: Trial) -> str:
    """Many saves, also of both files at once and during a reload, and all sorts of clients."""
    random = trial.random()
    never = 0
    with trial.browsed(ALL) as (author, browsers):
        for number in range(trial.scale.many):
            save = author.save(random.choice((MAIN, SUB, BOTH)))
            if random.random() < NOT_WAITED and number + 1 < trial.scale.many:
                time.sleep(random.random() * 0.05)
                continue
            never += browsers.first(save, LIMIT) is None
            time.sleep(random.random() * 0.1)
        time.sleep(0.2)
    trial.figure(NEVER, never)
    return f"{trial.scale.many} saves, {never} never answered"


def quick(trial: Trial) -> str:
    """Saves of equal size within one second: is the last one answered?

    Python takes a compiled file for that of a source whose size and second of change are the same.
    """
    stale = 0
    with trial.browsed({"once": 1}) as (author, browsers):
        for number in range(trial.scale.bursts):
            time.sleep(trial.one.settles)
            last = _burst(author, SUB if number % 2 else MAIN)
            stale += browsers.first(last, LIMIT / 2) is None
    trial.figure("bursts", trial.scale.bursts)
    trial.figure(STALE, stale)
    return f"{stale} of {trial.scale.bursts} stale"


def _burst(author: Author, what: str) -> Save:
    # All of a burst within one second of the clock that files are dated by.
    time.sleep(1.03 - time.time() % 1)
    for number in range(BURST):
        if number:
            time.sleep(BETWEEN)
        last = author.save(what)
    return last


def idle(trial: Trial) -> str:
    """CPU time while nothing changes and nobody asks, with 5,000 files."""
    with trial.running() as (running, _):
        time.sleep(1)
        before = running.processes()
        used, began = resources.cpu_seconds(before), time.monotonic()
        time.sleep(trial.scale.seconds)
        used = resources.cpu_seconds(before) - used
        share = used / (time.monotonic() - began)
        if running.processes() != before:
            raise ServerFailure("its processes changed while nothing happened")
    trial.figure("share of a core", share)
    trial.figure("processes", len(before))
    return f"{share * 100:.2f} % of a core, {len(before)} processes"


def memory(trial: Trial) -> str:
    """PSS after requests, and again after saves where they are noticed."""
    with trial.running() as (running, author):
        start = _memory(trial, running, AT_START)
        if trial.one is not SERVE:
            with Browsers(running.port, {"once": 1}, trial.lab.client_core) as browsers:
                for number in range(trial.scale.remembered):
                    if browsers.first(author.save(SUB if number % 2 else MAIN), LIMIT) is None:
                        raise ServerFailure("a version was never answered")
                    time.sleep(0.2)
        later = _memory(trial, running, LATER)
    return f"PSS {start / 2**20:.1f} MiB, after saves {later / 2**20:.1f} MiB"


def _memory(trial: Trial, running: Running, when: str) -> int:
    ask_often(running, REQUESTS)
    rest(running)
    used = resources.memory(running.processes())
    for name in ("pss", "uss"):
        trial.figure(f"{trial.kind.name}: {name} {when}", getattr(used, name), "bytes")
    trial.figure(f"{trial.kind.name}: processes {when}", used.processes)
    return used.pss


@dataclass(frozen=True)
class Experiment:
    """What is done, with which projects, and who takes part."""

    run: Callable[[Trial], str]
    kinds: Sequence[Kind]
    servers: Sequence[ReloadingServer] = SERVERS


EXPERIMENTS = {
    **{name: Experiment(save_to_answer, [kind]) for name, kind in KINDS.items()},
    "saves": Experiment(saves, [FLASK], MODES),
    "quick": Experiment(quick, [HELLO]),
    "idle": Experiment(idle, [LARGE]),
    "memory": Experiment(memory, [HELLO, FLASK, DJANGO], (SERVE, OURS)),
}


def everyone() -> list[ReloadingServer]:
    """All who take part in something."""
    named = {one.name: one for made in EXPERIMENTS.values() for one in made.servers}
    return list(named.values())


def plan(
    lab: Lab, scale: Scale, chosen: Sequence[ReloadingServer], options: argparse.Namespace
) -> list[Step]:
    """All rounds, every server once a round, another one first each time."""
    return [step for name in options.names for step in _steps(lab, scale, name, chosen)]


def _steps(lab: Lab, scale: Scale, name: str, chosen: Sequence[ReloadingServer]) -> Iterator[Step]:
    experiment = EXPERIMENTS[name]
    taking_part = [
        (one, server, kind)
        for kind in experiment.kinds
        for one in experiment.servers
        if one in chosen and (server := one.server(kind))
    ]
    lab = replace(lab, rounds=scale.rounds_of(name))
    for number, (one, server, kind) in engine.in_turns(lab, taking_part):
        trial = Trial(lab, name, number, server, scale, one, kind)
        of = f" of {kind.name}" if len(experiment.kinds) > 1 else ""
        what = f"{name}{of}, round {number + 1} of {lab.rounds}, {one.name}"
        yield Step(server, what, partial(experiment.run, trial))
