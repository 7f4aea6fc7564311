"""Runs a study: starts its servers in turns, measures each and stores the results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from loadtests import programs
from loadtests.clients import external
from loadtests.clients.load import Load
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import disturbance, machine, resources
from loadtests.measure.listeners import listening
from loadtests.measure.waiting import longer
from loadtests.reporting.progress import Progress
from loadtests.servers import peers
from loadtests.servers.application import Application
from loadtests.servers.registry import Server, missing, require_release, version, versions
from loadtests.servers.registry.given import Given
from loadtests.servers.running import Running
from loadtests.store import Store
from loadtests.studies.bench.scenarios import Scenario

if TYPE_CHECKING:
    from typing_extensions import Self

WARM_SECONDS = 0.4
SHOWN = 20
"""Faults of a round that are stored with their details."""

T = TypeVar("T")


@dataclass(frozen=True)
class Lab:
    """How to measure: `seconds` per sample, `rounds` of them, on which cores (None: unpinned).

    `fixtures` are removed at the end of the run.
    """

    store: Store
    seconds: float
    rounds: int
    server_core: int | None
    client_core: int | None
    fixtures: ExitStack = field(default_factory=ExitStack)

    def unpinned(self) -> Lab:
        """The same with server and client free to use all cores."""
        return replace(self, server_core=None, client_core=None)


@dataclass(frozen=True)
class Step:
    """One measurement of one server. `action` stores its records and tells the outcome."""

    server: Server
    what: str
    action: Callable[[], str]


@dataclass(frozen=True)
class Trial:
    """One server in one round, of this `number`, of an experiment: what is measured and stored.

    Studies add how the server is started and loaded.
    """

    lab: Lab
    experiment: str
    number: int
    server: Server

    def step(self, run: Callable[[Self], str], of: str = "") -> Step:
        """The step in which `run` does this; `of` tells it from others of the same round."""
        number = self.number % self.lab.rounds + 1
        what = f"{self.experiment}{of}, round {number} of {self.lab.rounds}, {self.server.name}"
        return Step(self.server, what, partial(run, self))

    def running(
        self, application: Application | None = None, target: str = "/", **how: Any
    ) -> Running:
        """The server on its core, to be entered."""
        core = self.lab.server_core
        return Running(self.server, application, target=target, **{"core": core, **how})

    def started(self, scenario: Scenario) -> Running:
        """The server, as it is started and checked for a scenario."""
        checked = {"request": scenario.request(), "body": scenario.body, "count": scenario.depth}
        return self.running(scenario.application, scenario.target, **checked)

    def observe(
        self, scenario: Scenario, running: Running, warm: float = WARM_SECONDS
    ) -> dict[str, Any]:
        """Loads a running server; the sample, which is not stored yet.

        Raises ServerFailure if it dies or answers nothing.
        """
        lab = self.lab
        if running.server.own:
            scenario = replace(scenario, target=running.at(scenario.target), body=b"")
        if warm:
            scenario.drive(running.port, min(warm, lab.seconds), lab.client_core)
        for seconds in longer(lab.seconds):
            sample = self._observe_once(scenario, running, seconds)
            if sample:
                return sample
        raise ServerFailure(f"it answered no request of this scenario: {running.last_words()}")

    def _observe_once(
        self, scenario: Scenario, running: Running, seconds: float
    ) -> dict[str, Any] | None:
        """A sample, or None: nothing was answered, and nothing failed."""
        lab = self.lab
        before = running.processes()
        cpu_before = resources.cpu_seconds(before)
        busy_before = resources.machine_busy_seconds()
        began = time.monotonic()
        load = scenario.drive(running.port, seconds, lab.client_core)
        elapsed = time.monotonic() - began
        busy = resources.machine_busy_seconds() - busy_before
        after = running.processes()
        if not set(before) <= set(after):
            raise ServerFailure(f"one of its processes ended under load: {running.last_words()}")
        cpu = resources.cpu_seconds(after) - cpu_before
        if load.is_silent:
            return None
        if load.requests == 0:
            raise ServerFailure(f"it answered no request of this scenario: {running.last_words()}")
        return self.described(scenario, load, cpu, elapsed, busy, resources.memory(after))

    def described(
        self,
        scenario: Scenario,
        load: Load,
        cpu: float,
        elapsed: float,
        busy: float,
        used: resources.Memory,
    ) -> dict[str, Any]:
        """A sample as it is stored. `cpu` is what the server used, `busy` what the machine did."""
        others = busy - cpu - load.busy * load.seconds
        latencies = ("mean_us", "p50_us", "p99_us", "max_us")
        return {
            **self._place(),
            "scenario": scenario.name,
            "requests": load.requests,
            "octets": load.octets,
            "seconds": load.seconds,
            "rate": round(load.rate, 1),
            # wrk's correction loses latencies shorter than its shortest with pipelined requests.
            **{name: getattr(load, name) for name in latencies if scenario.depth == 1},
            "errors": load.errors,
            "cpu_us": round(cpu / load.requests * 1e6, 4),
            "server_busy": round(cpu / elapsed, 3),
            "client_busy": round(load.busy, 3),
            "others_busy": round(max(others, 0.0) / (elapsed * (os.cpu_count() or 1)), 3),
            **used._asdict(),
        }

    def take(self, scenario: Scenario, running: Running) -> dict[str, Any]:
        """As `observe`, and stores the sample."""
        sample = self.observe(scenario, running)
        self.lab.store.add("sample", **sample)
        return sample

    def sample(self, **fields: Any) -> None:
        """Stores a sample of another kind of load."""
        self._add("sample", **fields)

    def figure(self, name: str, value: float, unit: str = "") -> None:
        self._add("figure", name=name, value=round(value, 6), unit=unit)

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
        self.lab.store.add(record, **self._place(), **values)

    def _place(self) -> dict[str, Any]:
        return {"experiment": self.experiment, "server": self.server.name, "round": self.number}


def measure(trial: Trial, scenario: Scenario) -> str:
    """Starts a server, checks its answer, warms it up, measures it and stops it."""
    with trial.started(scenario) as running:
        sample = trial.take(scenario, running)
    return f"{sample['cpu_us']:8.2f} µs  {sample['rate']:9,.0f}/s"


def rounds(
    lab: Lab, experiment: str, servers: Sequence[Any], run: Callable[[Trial], str], of: str = ""
) -> list[Step]:
    """`run` for every server once a round, another one first each time."""
    return [
        Trial(lab, experiment, number, server).step(run, of)
        for number, server in in_turns(lab, servers)
    ]


def steps(
    lab: Lab,
    asked: Iterable[Mapping[Server, Scenario]],
    experiment: str = "bench",
    action: Callable[[Trial, Any], str] = measure,
) -> list[Step]:
    """What each server is asked, in rounds, every server once a round, another one first each time.

    What is in one dictionary is measured in turns.
    """
    return [
        Step(
            server,
            f"{scenarios[server].name}, round {number + 1}, {server.name}",
            partial(action, Trial(lab, experiment, number, server), scenarios[server]),
        )
        for scenarios in asked
        for number, server in in_turns(lab, list(scenarios))
    ]


def in_turns(lab: Lab, servers: Sequence[T]) -> list[tuple[int, T]]:
    """The rounds: the number and a server, every server in each, another one first each time."""
    turns: list[tuple[int, T]] = []
    for number in range(lab.rounds):
        first = number * max(len(servers) // lab.rounds, 1) % max(len(servers), 1)
        turns += [(number, server) for server in [*servers[first:], *servers[:first]]]
    return turns


def _how_to_get(absent: Sequence[Server]) -> str:
    """A line on the servers that are not installed, and the commands that install them."""
    known, failed = {name.lower() for name in peers.names()}, peers.failures()
    packages = {one for server in absent for one in (server.package, server.extra) if one}
    wanted = [one for one in packages if one.lower() in known - failed.keys() and not version(one)]
    names = {name for server in absent for name in server.programs if programs.missing(name)}
    count = f"{len(absent)} servers are" if len(absent) > 1 else "1 server is"
    said = [f"{count} not installed and left out"]
    if wanted:
        said.append(f"`{programs.COMMAND} peers` installs {', '.join(sorted(wanted))}")
    if names:
        of_debian = sorted({programs.PROGRAMS[name].package for name in names})
        said.append(f"Debian has the others: `apt install {' '.join(of_debian)}`")
    return "; ".join(said)


def _running_seconds(server: Server) -> float:
    """CPU time so far of a server that the lab does not start; 0 of any other."""
    if not isinstance(server, Given) or not server.listens:
        return 0.0
    with suppress(ServerFailure):
        return resources.cpu_seconds(listening(server.listens))
    return 0.0


def run(
    lab: Lab,
    planned: Sequence[Step],
    command: str,
    finished: Container[str] = (),
    *,
    with_wrk: bool = False,
    **more: Any,
) -> None:
    """Takes the steps; servers that are missing or fail are recorded, and the rest goes on.

    Those of which `finished` has the name were taken before the run was interrupted; `with_wrk`
    says that the client is wrk; `more` is stored with the description of the run, and with what was
    missing or failed.

    Raises LabError if nothing could be measured at all, if wrk is missing, or if our core is not a
    release build.
    """
    client = external.wrk_version() if with_wrk else ""
    servers = list(dict.fromkeys(step.server for step in planned))
    require_release(servers)
    absent = {server.name: reason for server in servers if (reason := missing(server))}
    there = [step for step in planned if step.server.name not in absent]
    lab.store.add(
        "run",
        command=command,
        steps=len({step.what for step in there}),
        seconds=lab.seconds,
        server_core=lab.server_core,
        client_core=lab.client_core,
        commands={server.name: server.command.replace("~", " ") for server in servers},
        own={server.name: server.target for server in servers if server.own},
        machine=machine.describe(versions(servers), client),
        **more,
    )
    for name, reason in absent.items():
        lab.store.add("missing", server=name, reason=reason, **more)
    todo = [step for step in there if step.what not in finished]
    told, done = False, len(there) - len(todo)
    with Progress(len(todo)) as progress:
        if absent:
            progress.say(_how_to_get([server for server in servers if server.name in absent]))
        for name, reason in absent.items():
            progress.say(f"left out: {name}: {reason}")
        for step in todo:
            progress.begin(step.what)
            before, theirs = disturbance.read(), _running_seconds(step.server)
            try:
                outcome = step.action()
                done += 1
                around = disturbance.since(before, _running_seconds(step.server) - theirs)
                lab.store.add("done", what=step.what, machine=around.record(), **more)
            except (ServerFailure, LabError) as failure:
                if step.server.given and not done:
                    raise LabError(f"{step.server.name}: {failure}") from None
                outcome = f"failed: {failure}"
                what, reason = step.what, str(failure)
                lab.store.add("failure", server=step.server.name, what=what, reason=reason, **more)
                progress.say(f"{step.what} {outcome}")
            progress.step(step.what, outcome)
            if lab.store.lost and not told:
                progress.say(f"not kept: {lab.store.lost}; the rest is measured all the same")
                told = True
    if planned and not done:
        raise LabError(f"nothing could be measured; the reasons are in {lab.store.path}")
