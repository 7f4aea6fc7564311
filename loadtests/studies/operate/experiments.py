"""The experiments `operate`: reload, upgrade, recycle, kill, time out and stop under load.

An experiment is a step per server and round; each starts a server and a load of its own. What a
step has found is stored as figures, one by one, and its faults as a record of their own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any

from loadtests.apps.operated import BROKEN
from loadtests.clients.client_process import ClientProcess
from loadtests.clients.connection import request_bytes
from loadtests.clients.steady.handle import Death, SteadyClients, held, unexplained
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.measure.waiting import patience, wait_until
from loadtests.servers.application import Application
from loadtests.servers.certificate import certificate
from loadtests.servers.registry.operate import FOUR, GRACE, OperatedServer, hang_up
from loadtests.servers.running import Running
from loadtests.store import without_paths
from loadtests.studies import engine
from loadtests.studies.engine import Lab, Step
from loadtests.studies.sample import ask_often
from loadtests.studies.study import Scale, scales

APPLICATION = Application("loadtests/apps", "operated")
FLASK = Application("apps/flaskapp", "app")
FRAMEWORKS = {"Flask": FLASK, "Django": Application("apps/djangoapp", "app", view=FLASK)}
MISSING = "/missing"
"""The path at which both answer the same."""
MIXED = (
    request_bytes("/"),
    request_bytes("/hello/Ann"),
    request_bytes(
        "/greet", [("Content-Type", "application/x-www-form-urlencoded")], b"name=Ann+Other"
    ),
    request_bytes("/sum", [("Content-Type", "application/json")], b'{"numbers": [1, 2, 3, 4]}'),
    request_bytes(MISSING),
)
"""What is asked for in turn, in `memory`."""
WHEN = EARLY, LATE = "after 2,000 requests", "after 20,000 requests"
"""When memory is looked at, in `preload`: garbage is collected late. In the others only then."""
PATIENCE = patience(30.0)
KEEPERS = 64
"""Connections that are opened together, in `balance`."""
CLIENTS = 8
PAGE_CLIENTS = 8
"""Clients that ask over TLS, in `sockets`."""
SHOWN_LINES = 12
CUT = ("504", "reset", "closed", "short")
ENDED = (*CUT, "500", "502", "503")
"""What becomes of a request that hangs, if something ends it; the first are how it should end."""
EACH = {
    "reload": 10,
    "upgrade": 10,
    "sockets": 10,
    "stop": 20,
    "preload": 5,
    "memory": 5,
    "refork": 3,
    "balance": 10,
    "kill": 2,
}
SCALES = FULL, QUICK, TINY = scales(
    # Seconds are of load that nothing else ends.
    Scale("full", 0, 30, each=EACH),
    Scale("quick", 0, 5),
    Scale("tiny", 0, 1),
    reloads=(20, 5, 2),
    upgrades=(5, 2, 1),
    # WebSockets, half of them over TLS.
    sockets=(200, 200, 10),
    kills=(20, 4, 2),
    # Seconds from one kill to the next.
    between=(1, 1, 0.7),
    # Requests to one that hangs.
    every=(1_000, 200, 40),
    # Seconds of load before something is done.
    settle=(1.5, 0.7, 0.3),
    # Seconds for old processes to end, after which the next thing is done all the same.
    grace=(15, 5, 15),
    # Seconds for which a reload that must fail is watched.
    watched=(5, 2.5, 0.7),
    # Further requests before memory is looked at.
    memory=((2_000, 18_000), (400, 400), (100, 100)),
)


@dataclass(frozen=True)
class Trial(engine.Trial):
    """A server, a load, and what they show."""

    amounts: Any
    one: OperatedServer

    def start(self, application: Application = APPLICATION, target: str = "/") -> Running:
        if self.number == 0:
            self.note("command", self.server.command.replace("~", " "))
        files = {"version": "0"}
        if self.experiment == "sockets" or self.server.tls:
            files |= certificate()
        if self.one.configuration:
            files[self.one.configuration.name] = self.one.configuration.sound
        server = replace(self.server, files=tuple(files.items()))
        environ = {"LOADTESTS_VERSION": "{folder}/version"}
        return replace(self, server=server).running(application, target, environ=environ)

    @contextlib.contextmanager
    def loaded(self, **clients: int) -> Iterator[tuple[Running, SteadyClients]]:
        """The server under steady load, with further clients."""
        mix = {**self.one.clients, **clients}
        every, core, protocol = self.amounts.every, self.lab.client_core, self.one.protocol
        with (
            self.start() as running,
            SteadyClients(running.port, mix, every=every, core=core, protocol=protocol) as load,
        ):
            time.sleep(self.amounts.settle)
            yield running, load

    def conclude(self, load: SteadyClients, *, deaths: Sequence[Death] = (), what: str = "") -> str:
        """Ends the load, stores what it has met, and tells it; `what` begins the names of figures.

        A connection that died with a killed process had to.
        """
        seconds = time.monotonic() - load.began
        state = load.end()
        faults = unexplained(state.faults, deaths)
        kinds = Counter[str]()
        for fault in faults:
            kinds[fault.kind] += fault.requests
        failed = kinds.total()
        if state.failed > sum(fault.requests for fault in state.faults):
            # There are more than were told one by one, and nothing is known of the others.
            failed = state.failed
        for name, value, unit in (
            ("requests", state.requests, ""),
            ("requests/s", state.requests / seconds, "/s"),
            ("failed", failed, ""),
            ("workers that answered", len(state.processes), ""),
            ("connections closed while idle", state.unlucky.get("idle connection closed", 0), ""),
            ("sent again", state.unlucky.get("not processed, and sent again", 0), ""),
            ("p50", state.p50, "s"),
            ("p99", state.p99, "s"),
            ("longest", state.longest, "s"),
        ):
            if value is not None:
                self.figure(f"{what}{name}", value, unit)
        if deaths:
            self.figure("failed with a killed worker", state.failed - failed)
        self.faults(kinds, [vars(fault) for fault in faults], unlucky=state.unlucky)
        told = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        return f"{state.requests:,} answered, {failed:,} failed{f' ({told})' if told else ''}"

    def excerpt(self, name: str, running: Running, text: str, word: str) -> None:
        """Stores the lines of a log around the first with a word; the last ones if none has it."""
        lines = without_paths(text.replace(str(running.folder), "FOLDER")).strip().splitlines()
        found = (number for number, line in enumerate(lines) if word and word in line)
        first = max(0, next(found, len(lines) - 1) - SHOWN_LINES // 2)
        self.note(name, "\n".join(lines[first : first + SHOWN_LINES]))


def _write(running: Running, name: str, text: str) -> None:
    """A file in the server's folder; of `version`, the next application that is loaded is."""
    new = running.folder / f"{name}.new"
    new.write_text(text, encoding="ascii")
    new.replace(running.folder / name)


def _answers(load: SteadyClients, version: str, seconds: float) -> bool:
    """Whether a version answers within this time."""
    return wait_until(lambda: version in load.state().versions, seconds)


def _await_version(running: Running, load: SteadyClients, version: str) -> None:
    if not _answers(load, version, PATIENCE):
        running.processes()
        said = running.last_words()
        raise ServerFailure(f"version {version} does not answer after {PATIENCE:.0f} s: {said}")


def _reload(trial: Trial, running: Running, load: SteadyClients, version: str) -> bool:
    """A new version of the application; whether the old workers have gone in time."""
    before = set(running.processes()) - {running.main}
    if trial.one.reload is not hang_up:
        # What stands beside the workers, such as a router, stays.
        before &= set(load.state().processes)
    _write(running, "version", version)
    trial.one.reload(running)
    _await_version(running, load, version)
    return wait_until(lambda: before.isdisjoint(running.left()), trial.amounts.grace)


def reload(trial: Trial) -> str:
    """New versions of the application, one after the other, by the server's own kind of reload."""
    with trial.loaded() as (running, load):
        count = min(trial.amounts.reloads, trial.one.most)
        gone = [_reload(trial, running, load, str(version)) for version in range(1, count + 1)]
        trial.figure("reloads", count)
        trial.figure("old workers still there", gone.count(False))
        return trial.conclude(load)


def sockets(trial: Trial) -> str:
    """Reloads with WebSockets and kept TLS connections beside the load: each end must be clean."""
    module, core, half = (
        "loadtests.clients.sockets",
        trial.lab.client_core,
        trial.amounts.sockets // 2,
    )
    with trial.loaded() as (running, load):
        arguments = [*map(str, (running.port, running.first, half, PAGE_CLIENTS))]
        with ClientProcess("WebSockets", module, arguments, core) as staying:
            for version in range(1, trial.amounts.reloads + 1):
                wait_until(lambda: staying.ask("state")["open"] == 2 * half, PATIENCE)
                _reload(trial, running, load, str(version))
            told = staying.ask("end")
            said = trial.conclude(load)
    counts, faults = told["counts"], told["faults"]
    clean = counts.get("closed with 1001", 0)
    for name, value in (
        ("reloads", trial.amounts.reloads),
        ("WebSockets", 2 * half),
        *((name, counts.get(name, 0)) for name in ("closed with 1001", "echoes", "answers")),
        *((f"unclean: {name}", faults.get(name, 0)) for name in ("websocket", "page client")),
    ):
        trial.figure(name, value)
    trial.faults(faults, told["shown"])
    return f"{said}; {clean:,} clean closes, {sum(faults.values())} unclean"


def upgrade(trial: Trial) -> str:
    """A new main process takes over the sockets, again and again."""
    with trial.loaded() as (running, load):
        # Written when everything accepts.
        wait_until(lambda: _main(running) == running.main, PATIENCE)
        count = min(trial.amounts.upgrades, trial.one.most)
        for version in map(str, range(1, count + 1)):
            _write(running, "version", version)
            old = running.main
            os.kill(old, signal.SIGUSR2)
            if not trial.one.ours:
                # gunicorn's does not end by itself. WINCH between them is for daemons only.
                _await_version(running, load, version)
                os.kill(old, signal.SIGTERM)
            if not wait_until(partial(_succeeded, running, old), PATIENCE):
                raise ServerFailure(f"the old main process is still there: {running.last_words()}")
            running.main = _main(running)
            _await_version(running, load, version)
        trial.figure("upgrades", count)
        return trial.conclude(load)


def _main(running: Running) -> int:
    """The main process by its pidfile."""
    try:
        return int((running.folder / "pid").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def _succeeded(running: Running, old: int) -> bool:
    left = running.left()
    return _main(running) in left and old not in left


def recycle(trial: Trial) -> str:
    """Workers are replaced after a number of requests."""
    with trial.loaded() as (_, load):
        time.sleep(max(trial.lab.seconds, trial.one.lifetime))
        return trial.conclude(load)


def kill(trial: Trial) -> str:
    """A worker is killed now and then; only what it had in hand may fail."""
    random = Random(trial.number)
    deaths: list[Death] = []
    with trial.loaded() as (running, load):
        for _ in range(trial.amounts.kills):
            due = time.monotonic() + trial.amounts.between
            left = running.left()
            if running.main not in left:
                # The load tells what that costs.
                trial.excerpt("died", running, running.output(), "")
                break
            answered = load.state().processes
            # One that was killed may still be ending.
            gone = {running.main, *(death.process for death in deaths)}
            alive = [process for process in left if process in answered and process not in gone]
            if alive:
                deaths.append(_kill(random.choice(alive), running.port))
            time.sleep(max(0.0, due - time.monotonic()))
        trial.figure("killed", len(deaths))
        return trial.conclude(load, deaths=deaths)


def _kill(process: int, port: int) -> Death:
    """Kills a process. It stands still before, so that it takes nothing that we do not know."""
    os.kill(process, signal.SIGSTOP)
    wait_until(partial(_stands_still, process), PATIENCE)
    ports = held(process, port)
    at = time.monotonic()
    os.kill(process, signal.SIGKILL)
    return Death(process, at, frozenset(ports))


def _stands_still(process: int) -> bool:
    tasks = os.listdir(f"/proc/{process}/task")
    return all(resources.stat(f"{process}/task/{task}")[:1] in ([], ["T"]) for task in tasks)


def timeout(trial: Trial) -> str:
    """One request of many hangs; it must be ended in time, and cost nobody else anything."""
    with trial.loaded(hanging=1) as (running, load):
        time.sleep(trial.lab.seconds)
        said = trial.conclude(load)
        # Whoever is not ended is waited for until now.
        hung = load.state().hung
        output = running.output()
        if "operated.py" in output:
            trial.excerpt("log", running, output, "operated.py")
    ended = sum(count for what, count in hung.items() if what.split()[1] in ENDED)
    counts = {f"hung: {what}": count for what, count in hung.items()}
    for name, count in {**counts, "hung": sum(hung.values()), "hung and ended": ended}.items():
        trial.figure(name, count)
    return f"{said}; of {sum(hung.values())} that hung {ended} were ended"


def stop(trial: Trial) -> str:
    """TERM; what was begun is answered, and then the server has ended."""
    with trial.loaded() as (running, load):
        load.stopping()
        asked = time.monotonic()
        os.kill(running.main, signal.SIGTERM)
        if not wait_until(lambda: not running.left(), GRACE + PATIENCE):
            raise ServerFailure(f"it does not end: {running.last_words()}")
        taken = time.monotonic() - asked
        trial.figure("seconds to the end", round(taken, 3), "s")
        return f"{trial.conclude(load)}, ended after {taken:.2f} s"


def broken(trial: Trial) -> str:
    """A reload that must fail: of what cannot be imported, and with a file that cannot be read."""
    ways = [("application", "version", BROKEN, "1", "broken on purpose")]
    if file := trial.one.configuration:
        ways.append(("configuration", file.name, file.broken, file.sound, file.name))
    outcome = []
    for what, name, spoilt, sound, reason in ways:
        with trial.loaded() as (running, load):
            before = len(running.output())
            _write(running, name, spoilt)
            trial.one.reload(running)
            time.sleep(trial.amounts.watched)
            said = running.output()[before:]
            trial.figure(f"{what}: said why", float(reason in said))
            trial.excerpt(what, running, said, reason)
            _write(running, name, sound)
            outcome.append(f"{what}: {'says' if reason in said else 'does not say'} why")
            with contextlib.suppress(ServerFailure, OSError):
                _write(running, "version", "1")
                running.processes()
                trial.one.reload(running)
            recovered = _answers(load, "1", trial.amounts.grace)
            trial.figure(f"{what}: can be reloaded afterwards", float(recovered))
            outcome.append(trial.conclude(load, what=f"{what}: "))
    return "; ".join(outcome)


def preload(trial: Trial) -> str:
    """Memory of all processes after requests for a Flask application that was loaded before."""
    outcome = []
    with trial.start(FLASK) as running:
        running.settle(FOUR, PATIENCE)
        for when, requests in zip(WHEN, trial.amounts.memory, strict=True):
            _ask(running, requests)
            used = trial.memory(running, f"{{}}, {when}")
            outcome.append(f"{used.pss / 2**20:.1f} MiB {when} in {used.processes} processes")
    return f"PSS {', '.join(outcome)}"


def memory(trial: Trial) -> str:
    """Memory of all processes after mixed requests for applications with each framework."""
    outcome = []
    for framework, application in FRAMEWORKS.items():
        with trial.start(application, MISSING) as running:
            running.settle(FOUR, PATIENCE)
            _ask(running, sum(trial.amounts.memory), MIXED)
            if trial.one.preloads:
                # Workers may be replaced just now.
                running.settle(FOUR, PATIENCE)
            used = trial.memory(running, f"{{}}, {framework}")
            outcome.append(f"{used.pss / 2**20:.1f} MiB with {framework}")
    return f"PSS {', '.join(outcome)}"


def balance(trial: Trial) -> str:
    """Connections that are opened together and kept busy: how they spread over four workers."""
    core = trial.lab.client_core
    with trial.start() as running:
        running.settle(FOUR, PATIENCE)
        with SteadyClients(running.port, {"keeping": KEEPERS}, core=core) as load:
            time.sleep(min(trial.lab.seconds, 5))
            state = load.state()
            said = trial.conclude(load)
    asked = [seen.count for seen in state.processes.values()]
    for name, counts in (("connections", state.connections.values()), ("requests", asked)):
        share = max(counts) / (sum(counts) / FOUR)
        trial.figure(f"busiest / mean, {name}", round(share, 4), "×")
    return f"busiest {share:.2f} × the mean; {said}"


def _ask(running: Running, count: int, requests: Sequence[bytes] = ()) -> None:
    """Has several clients ask at once, `count` requests together."""
    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(lambda _: ask_often(running, count // CLIENTS, requests), range(CLIENTS)))


EXPERIMENTS: dict[str, Callable[[Trial], str]] = {
    **{
        run.__name__: run
        for run in (reload, upgrade, sockets, recycle, kill, timeout, stop, broken, preload, memory)
    },
    "refork": memory,
    "balance": balance,
}


def plan(
    lab: Lab, scale: Scale, chosen: Sequence[OperatedServer], options: Namespace
) -> list[Step]:
    """All rounds of the experiments, with every server that can take part once a round."""
    return [
        Trial(own, name, number, one.server(name), scale.amounts, one).step(EXPERIMENTS[name])
        for name in options.names
        for own in [replace(lab.unpinned(), rounds=scale.rounds_of(name))]
        for number in range(own.rounds)
        for one in chosen
        if one.takes_part(name)
    ]
