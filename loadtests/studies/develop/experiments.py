"""The experiments `develop`: what requests get, and how soon, while files are saved.

A step is one server in one round.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from argparse import Namespace
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random
from typing import Any, NamedTuple

from loadtests.clients.client_process import ClientProcess
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.measure.waiting import patience, wait_until
from loadtests.servers import projects
from loadtests.servers.projects import FIRST, KINDS, MAIN, SUB, EditedProject, Kind
from loadtests.servers.registry.develop import MODES, OURS, SERVE, SERVERS, ReloadingServer
from loadtests.servers.running import Running
from loadtests.store import without_paths
from loadtests.studies import engine
from loadtests.studies.engine import Lab, Step, in_turns
from loadtests.studies.sample import ask_often
from loadtests.studies.study import Scale, scales

LIMIT = patience(10.0)
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
BOTH = "both"
HALF_LOADED = "half-loaded"
BACKWARDS = "backwards"
SCALES = FULL, QUICK, TINY = scales(
    # Seconds are those for which CPU time is looked at.
    Scale("full", 0, 15, each={**dict.fromkeys(KINDS, 3), "saves": 2, "memory": 3}),
    Scale("quick", 0, 4),
    Scale("tiny", 0, 0.3),
    saves=(10, 4, 2),
    many=(100, 20, 10),
    bursts=(5, 2, 1),
    # Saves before memory is looked at again.
    remembered=(10, 3, 1),
)


@dataclass(frozen=True)
class Save:
    """The versions of the main module and of the one that it imports, and since when.

    The time is of the monotonic clock, which all processes share.
    """

    began: float
    versions: tuple[str, str]


class Author:
    """Saves files of one project as editors do: written beside the old file, then renamed.

    Each version is a number that no other save has.
    """

    def __init__(self, project: EditedProject) -> None:
        self.saves = [Save(time.monotonic(), (FIRST, FIRST))]
        self._project = project
        self._files = {MAIN: project.kind.main, SUB: project.kind.sub}

    def save(self, what: str) -> Save:
        """Saves a file, MAIN or SUB, or BOTH of them one right after the other."""
        version = f"{len(self.saves):06}"
        main, sub = self.saves[-1].versions
        ready = []
        for name in (MAIN, SUB) if what == BOTH else (what,):
            file = self._files[name]
            beside = self._project.path.parent / name
            beside.write_text(self._project.text(file, version), encoding="utf-8")
            ready.append((beside, self._project.path / file))
        began = time.monotonic()
        for written, place in ready:
            os.replace(written, place)
        versions = (version if what != SUB else main, version if what != MAIN else sub)
        self.saves.append(Save(began, versions))
        return self.saves[-1]


class Asked(NamedTuple):
    """A request of a client, when it began and ended by the monotonic clock, and what came of it.

    That are the `versions` of its answer, or a `fault` of `clients.steady.connection.KINDS`; then
    the first of these is details.
    """

    client: str
    began: float
    ended: float
    fault: str
    versions: tuple[str, str]


class Browsers(ClientProcess):
    """Clients of `loadtests.clients.steady.polling`, which ask until the block ends."""

    def __init__(self, port: int, clients: Mapping[str, int], core: int | None) -> None:
        arguments = [str(port), json.dumps(dict(clients))]
        super().__init__("clients", "loadtests.clients.steady.polling", arguments, core)

    def first(self, save: Save, seconds: float) -> float | None:
        """How long after a save its version was first told; None if it was not in this time."""
        at: float | None = self.ask(f"await {' '.join(save.versions)} {seconds}")
        return None if at is None else at - save.began

    def end(self) -> tuple[list[Asked], dict[str, int]]:
        """Let all finish what they have begun; all that was asked, and what else was counted."""
        told = self.ask("end")
        asked = [Asked._make((*one[:4], tuple(one[4:]))) for one in told["asked"]]
        return asked, told["counts"]


def judge(saves: Sequence[Save], asked: Sequence[Asked]) -> list[dict[str, Any]]:
    """The requests that something was wrong with, and what.

    Beside what can become of any request: its answer may be HALF_LOADED, made by modules that were
    never in the project together; or BACKWARDS, of an older version than somebody had before it was
    asked.
    """
    numbers = {save.versions: number for number, save in enumerate(saves)}
    answered = sorted(
        (one.ended, numbers[one.versions]) for one in asked if one.versions in numbers
    )
    ends = [ended for ended, _ in answered]
    newest = [0, *accumulate((number for _, number in answered), max)]
    start = saves[0].began
    found = []
    for one in asked:
        kind, what = one.fault, one.versions[0]
        if not kind:
            what = " and ".join(one.versions)
            if one.versions not in numbers:
                kind = HALF_LOADED
            elif numbers[one.versions] < newest[bisect_left(ends, one.began)]:
                kind = BACKWARDS
        if kind:
            times = {"began": round(one.began - start, 4), "ended": round(one.ended - start, 4)}
            found.append({"kind": kind, "sent": one.client, "what": what, **times})
    return found


@dataclass(frozen=True)
class Trial(engine.Trial):
    """One server with one project."""

    server: ReloadingServer
    amounts: Any
    kind: Kind

    @contextlib.contextmanager
    def serving(self) -> Iterator[tuple[Running, Author]]:
        """The server with a new project, when both have come to rest."""
        with projects.made(self.kind) as project:
            if self.number == 0:
                self.note("command", self.server.command.replace("~", " "))
            core, environ = self.lab.server_core, self.server.environ(self.kind, str(project.path))
            with Running(self.server, project, core=core, environ=environ) as running:
                rest(running)
                yield running, Author(project)

    @contextlib.contextmanager
    def browsed(self, clients: Mapping[str, int]) -> Iterator[tuple[Author, Browsers]]:
        """The same while clients ask; what they were told is judged and stored at the end."""
        with self.serving() as (running, author):
            with Browsers(running.port, clients, self.lab.client_core) as browsers:
                time.sleep(0.2)
                yield author, browsers
                asked, counts = browsers.end()
            # Raises ServerFailure if it has died.
            running.processes()
            said = without_paths(running.output().replace(str(running.application.path), "."))
        faults = judge(author.saves, asked)
        kinds = Counter(str(fault["kind"]) for fault in faults)
        counts |= {f"failed: {kind}": count for kind, count in kinds.items()}
        counts |= {"saves": len(author.saves) - 1, "requests": len(asked), "failed": len(faults)}
        for what, count in counts.items():
            self.figure(what, count)
        longest = max((one.ended - one.began for one in asked), default=0.0)
        self.figure("longest request", longest, "s")
        self.faults(kinds, faults)
        if faults:
            self.note("log", "\n".join(said.splitlines()[-LOGGED:]))

    def random(self) -> Random:
        """For pauses, the same ones in every run."""
        return Random(f"{self.experiment} {self.server.name} {self.number}")


def rest(running: Running) -> None:
    """Waits until the server does nothing any more: it watches, and has imported what it wants."""
    if not wait_until(running.is_quiet, QUIET, 0):
        raise ServerFailure(f"it is not quiet {QUIET:.0f} s after its first answer")
    time.sleep(0.5)


def save_to_answer(trial: Trial) -> str:
    """From each save to the first answer of its version."""
    random = trial.random()
    taken = []
    with trial.browsed(TWO) as (author, browsers):
        for number in range(trial.amounts.saves):
            # Who polls is met at any moment between two of its looks.
            pause = PERIOD if trial.server.polls else 0.3
            time.sleep(trial.server.settles + random.random() * pause)
            what = SUB if number % 2 else MAIN
            seconds = browsers.first(author.save(what), LIMIT)
            if seconds is not None:
                taken.append(seconds)
                trial.figure(f"seconds, {what}", seconds, "s")
        time.sleep(0.2)
    never = trial.amounts.saves - len(taken)
    trial.figure(NEVER, never)
    if not taken:
        raise ServerFailure(f"no version was answered within {LIMIT:.0f} s of its save")
    taken.sort()
    said = f"{taken[len(taken) // 2] * 1e3:.0f} ms, worst {taken[-1] * 1e3:.0f} ms"
    return f"{said}, {never} never" if never else said


def saves(trial: Trial) -> str:
    """Many saves, also of both files at once and during a reload, and all sorts of clients."""
    random, never = trial.random(), 0
    with trial.browsed(ALL) as (author, browsers):
        for number in range(trial.amounts.many):
            save = author.save(random.choice((MAIN, SUB, BOTH)))
            if random.random() < NOT_WAITED and number + 1 < trial.amounts.many:
                time.sleep(random.random() * 0.05)
                continue
            never += browsers.first(save, LIMIT) is None
            time.sleep(random.random() * 0.1)
        time.sleep(0.2)
    trial.figure(NEVER, never)
    return f"{trial.amounts.many} saves, {never} never answered"


def quick(trial: Trial) -> str:
    """Saves of equal size within one second: is the last one answered?

    Python takes a compiled file for that of a source whose size and second of change are the same.
    """
    stale, bursts = 0, trial.amounts.bursts
    with trial.browsed({"once": 1}) as (author, browsers):
        for number in range(bursts):
            time.sleep(trial.server.settles)
            # All of a burst within one second of the clock that files are dated by.
            time.sleep(1.03 - time.time() % 1)
            what = SUB if number % 2 else MAIN
            last = author.save(what)
            for _ in range(BURST - 1):
                time.sleep(BETWEEN)
                last = author.save(what)
            stale += browsers.first(last, LIMIT / 2) is None
    trial.figure("bursts", bursts)
    trial.figure(STALE, stale)
    return f"{stale} of {bursts} stale"


def idle(trial: Trial) -> str:
    """CPU time while nothing changes and nobody asks, with 5,000 files."""
    with trial.serving() as (running, _):
        time.sleep(1)
        before = running.processes()
        used, began = resources.cpu_seconds(before), time.monotonic()
        time.sleep(trial.lab.seconds)
        used = resources.cpu_seconds(before) - used
        share = used / (time.monotonic() - began)
        if running.processes() != before:
            raise ServerFailure("its processes changed while nothing happened")
    trial.figure("share of a core", share)
    trial.figure("processes", len(before))
    return f"{share * 100:.2f} % of a core, {len(before)} processes"


def memory(trial: Trial) -> str:
    """PSS after requests, and again after saves where they are noticed."""
    with trial.serving() as (running, author):
        start = _memory(trial, running, AT_START)
        if trial.server is not SERVE:
            with Browsers(running.port, {"once": 1}, trial.lab.client_core) as browsers:
                for number in range(trial.amounts.remembered):
                    if browsers.first(author.save(SUB if number % 2 else MAIN), LIMIT) is None:
                        raise ServerFailure("a version was never answered")
                    time.sleep(0.2)
        later = _memory(trial, running, LATER)
    return f"PSS {start / 2**20:.1f} MiB, after saves {later / 2**20:.1f} MiB"


def _memory(trial: Trial, running: Running, when: str) -> int:
    ask_often(running, REQUESTS)
    rest(running)
    return trial.memory(running, f"{trial.kind.name}: {{}} {when}").pss


EXPERIMENTS: dict[str, tuple[Callable[[Trial], str], Sequence[Kind], Sequence[ReloadingServer]]] = {
    **{name: (save_to_answer, [kind], SERVERS) for name, kind in KINDS.items()},
    "saves": (saves, [projects.FLASK], MODES),
    "quick": (quick, [projects.HELLO], SERVERS),
    "idle": (idle, [projects.LARGE], SERVERS),
    "memory": (memory, [projects.HELLO, projects.FLASK, projects.DJANGO], [SERVE, OURS]),
}
"""What is done, with which projects, and who takes part."""


def plan(
    lab: Lab, scale: Scale, chosen: Sequence[ReloadingServer], options: Namespace
) -> list[Step]:
    """All rounds, every server once a round, another one first each time."""
    planned = []
    for name in options.names:
        run, kinds, servers = EXPERIMENTS[name]
        own = replace(lab, rounds=scale.rounds_of(name))
        taking_part = [
            (one, kind)
            for kind in kinds
            for one in servers
            if one in chosen and kind.name in (one.only or (kind.name,))
        ]
        for number, (one, kind) in in_turns(own, taking_part):
            trial = Trial(own, name, number, one, scale.amounts, kind)
            planned.append(trial.step(run, f" of {kind.name}" if len(kinds) > 1 else ""))
    return planned
