"""The experiments `operate`: reload, upgrade, recycle, kill, time out and stop under load.

An experiment is a step per server and round; each starts a server and a load of its own. What a
step has found is stored as figures, one by one, and its faults as a record of their own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random

from loadtests.apps.operated import BROKEN
from loadtests.clients.steady.handle import Death, SteadyClients, held
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.measure.waiting import wait_until
from loadtests.servers.application import Application
from loadtests.servers.registry.lifecycle import GRACE, OperatedServer
from loadtests.servers.running import Running
from loadtests.studies.bench.experiments import ask_often
from loadtests.studies.engine import Lab, Step
from loadtests.studies.lifecycle.trial import Scale, Trial, excerpt

FLASK = Application("apps/flaskapp", "app")
PATIENCE = 30.0
KEEPERS = 64
"""Connections that are opened together, in `balance`."""
CLIENTS = 8
CUT = ("504", "reset", "closed", "short")
ENDED = (*CUT, "500", "502", "503")
"""What becomes of a request that hangs, if something ends it; the first are how it should end."""


def _set_version(running: Running, version: str) -> None:
    """The next application that is loaded is of this version."""
    new = running.folder / "version.new"
    new.write_text(version, encoding="ascii")
    new.replace(running.folder / "version")


def _answers(load: SteadyClients, version: str, seconds: float = PATIENCE) -> bool:
    """Whether a version answers within this time."""
    return wait_until(lambda: version in load.state().versions, seconds)


def _await_version(running: Running, load: SteadyClients, version: str) -> None:
    if not _answers(load, version):
        running.processes()
        raise ServerFailure(f"version {version} does not answer after {PATIENCE:.0f} s")


def reload(trial: Trial) -> str:
    """New versions of the application, one after the other, by the server's own kind of reload."""
    with trial.loaded() as (running, load):
        late = 0
        count = min(trial.scale.reloads, trial.one.most)
        for number in range(1, count + 1):
            before = set(running.processes()) - {running.main}
            if trial.one.how != "HUP":
                # What stands beside the workers, such as a router, stays.
                before &= set(load.state().processes)
            _set_version(running, str(number))
            trial.one.reload(running)
            _await_version(running, load, str(number))
            gone = wait_until(
                lambda before=before: not before & set(running.left()),  # type: ignore[misc]
                trial.scale.grace,
            )
            late += not gone
        trial.figure("reloads", count)
        trial.figure("old workers still there", late)
        return trial.conclude(load)


def upgrade(trial: Trial) -> str:
    """A new main process takes over the sockets, again and again."""
    with trial.loaded() as (running, load):
        # Written when everything accepts.
        pidfile = running.folder / "pid"
        wait_until(lambda: _read_pid(pidfile) == running.main, PATIENCE)
        count = min(trial.scale.upgrades, trial.one.most)
        for number in range(1, count + 1):
            version = str(number)
            _set_version(running, version)
            if trial.one.ours:
                _upgrade_ours(running, pidfile)
            else:
                _upgrade_gunicorn(running, load, pidfile, version)
            _await_version(running, load, version)
        trial.figure("upgrades", count)
        return trial.conclude(load)


def _read_pid(pidfile: Path) -> int:
    try:
        return int(pidfile.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def _upgrade_ours(running: Running, pidfile: Path) -> None:
    """USR2; the old main process ends by itself when the new one serves."""
    old = running.main
    os.kill(old, signal.SIGUSR2)
    _succeed(running, pidfile, old)


def _upgrade_gunicorn(running: Running, load: SteadyClients, pidfile: Path, version: str) -> None:
    """USR2, then TERM for the old main process. WINCH between them is for daemons only."""
    old = running.main
    os.kill(old, signal.SIGUSR2)
    if not _answers(load, version):
        raise ServerFailure(f"the new version does not answer: {running.last_words()}")
    os.kill(old, signal.SIGTERM)
    _succeed(running, pidfile, old)


def _succeed(running: Running, pidfile: Path, old: int) -> None:
    """Waits for the successor of a main process."""

    def succeeded() -> bool:
        new, left = _read_pid(pidfile), running.left()
        return new != old and new in left and old not in left

    if not wait_until(succeeded, PATIENCE):
        raise ServerFailure(f"the old main process is still there: {running.last_words()}")
    running.main = _read_pid(pidfile)


def recycle(trial: Trial) -> str:
    """Workers are replaced after a number of requests."""
    with trial.loaded() as (_, load):
        time.sleep(max(trial.scale.seconds, trial.one.lifetime))
        return trial.conclude(load)


def kill(trial: Trial) -> str:
    """A worker is killed now and then; only what it had in hand may fail."""
    random = Random(trial.number)
    deaths: list[Death] = []
    with trial.loaded() as (running, load):
        for _ in range(trial.scale.kills):
            due = time.monotonic() + trial.scale.between
            left = running.left()
            if running.main not in left:
                # The load tells what that costs.
                trial.note("died", excerpt(running, running.output(), ""))
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
    wait_until(lambda: _stands_still(process), PATIENCE)
    ports = held(process, port)
    at = time.monotonic()
    os.kill(process, signal.SIGKILL)
    return Death(process, at, frozenset(ports))


def _stands_still(process: int) -> bool:
    states = set()
    for task in Path(f"/proc/{process}/task").iterdir():
        with contextlib.suppress(OSError):
            states.add((task / "stat").read_text(errors="replace").rpartition(")")[2].split()[0])
    return states <= {"T"}


def timeout(trial: Trial) -> str:
    """One request of many hangs; it must be ended in time, and cost nobody else anything."""
    with trial.loaded(hanging=1) as (running, load):
        time.sleep(trial.scale.seconds)
        said = trial.conclude(load)
        # Whoever is not ended is waited for until now.
        hung = load.state().hung
        said_where = running.output()
        if "operated.py" in said_where:
            trial.note("log", excerpt(running, said_where, "operated.py"))
    for what, count in hung.items():
        trial.figure(f"hung: {what}", count)
    ended = sum(count for what, count in hung.items() if what.split()[1] in ENDED)
    trial.figure("hung", sum(hung.values()))
    trial.figure("hung and ended", ended)
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
    configuration = trial.one.configuration
    ways: list[tuple[str, Callable[[Running], object], Callable[[Running], object], str]] = [
        (
            "application",
            lambda running: _set_version(running, BROKEN),
            lambda running: _set_version(running, "1"),
            "broken on purpose",
        )
    ]
    if configuration:
        path = configuration.name
        ways.append(
            (
                "configuration",
                lambda running: (running.folder / path).write_text(configuration.broken),
                lambda running: (running.folder / path).write_text(configuration.sound),
                path,
            )
        )
    outcome = []
    for what, spoil, mend, reason in ways:
        with trial.loaded() as (running, load):
            before = len(running.output())
            spoil(running)
            trial.one.reload(running)
            time.sleep(trial.scale.watched)
            said = running.output()[before:]
            trial.figure(f"{what}: said why", float(reason in said))
            trial.note(what, excerpt(running, said, reason))
            mend(running)
            outcome.append(f"{what}: {'says' if reason in said else 'does not say'} why")
            with contextlib.suppress(ServerFailure, OSError):
                _set_version(running, "1")
                running.processes()
                trial.one.reload(running)
            recovered = _answers(load, "1", trial.scale.grace)
            trial.figure(f"{what}: can be reloaded afterwards", float(recovered))
            outcome.append(trial.conclude(load, what=f"{what}: "))
    return "; ".join(outcome)


def preload(trial: Trial) -> str:
    """Memory of all processes after requests for a Flask application that was loaded before."""
    outcome = []
    with trial.running(FLASK) as running:
        _settle(running, trial.one.workers["preload"])
        for when, requests in trial.scale.memory.items():
            with ThreadPoolExecutor(CLIENTS) as clients:
                for client in [
                    clients.submit(ask_often, running, requests // CLIENTS) for _ in range(CLIENTS)
                ]:
                    client.result()
            used = resources.memory(running.processes())
            for name in ("pss", "uss", "rss"):
                trial.figure(f"{name}, {when}", getattr(used, name), "bytes")
            trial.figure(f"processes, {when}", used.processes)
            outcome.append(f"{used.pss / 2**20:.1f} MiB {when} in {used.processes} processes")
    return f"PSS {', '.join(outcome)}"


def balance(trial: Trial) -> str:
    """Connections that are opened together and kept busy: how they spread over four workers."""
    workers = trial.one.workers["balance"]
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(trial.running())
        _settle(running, workers)
        load = SteadyClients(running.port, {"keeping": KEEPERS}, core=trial.lab.client_core)
        stack.enter_context(load)
        time.sleep(min(trial.scale.seconds, 5))
        state = load.state()
        asked = [seen.count for seen in state.processes.values()]
        shares = {
            "requests": max(asked) / (sum(asked) / workers),
            "connections": max(state.connections.values())
            / (sum(state.connections.values()) / workers),
        }
        said = trial.conclude(load)
    for name, share in shares.items():
        trial.figure(f"busiest / mean, {name}", round(share, 4), "×")
    return f"busiest {shares['requests']:.2f} × the mean; {said}"


def _settle(running: Running, workers: int) -> None:
    """Waits until all workers have begun: the first of them answers before."""
    if not wait_until(
        lambda: len(running.processes()) >= workers + 1 and running.is_quiet(), PATIENCE
    ):
        raise ServerFailure(f"it does not come to rest with {workers} workers")


TRIALS: dict[str, Callable[[Trial], str]] = {
    trial.__name__: trial
    for trial in (reload, upgrade, recycle, kill, timeout, stop, broken, preload, balance)
}


def plan(
    lab: Lab, scale: Scale, chosen: Sequence[OperatedServer], options: argparse.Namespace
) -> list[Step]:
    """All rounds of the experiments, with every server that can take part once a round."""
    lab = lab.unpinned()
    planned = []
    for name in options.names:
        for number in range(rounds := scale.rounds_of(name)):
            for one in chosen:
                if name not in one.cannot:
                    trial = Trial(lab, name, number, one.server(name), scale, one)
                    what = f"{name}, round {number + 1} of {rounds}, {one.name}"
                    planned.append(Step(trial.server, what, partial(TRIALS[name], trial)))
    return planned
