"""Several soaks at the same time, each in a process of its own."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import FrameType

from loadtests.reporting.progress import Progress
from loadtests.soak.run import Plan, Soak
from loadtests.store import Store

#: Longer than this a soak takes no more to end, when its load is over.
GRACE = 900.0

#: How often a soak says how it goes.
STEPS = 60


def run(plans: Sequence[Plan], path: Path, name: str) -> dict[str, list[str]]:
    """Run the plans and show how they go; returns for each mode what was wrong."""
    spawn = multiprocessing.get_context("spawn")
    failures: dict[str, list[str]] = {}
    processes = {}
    with Progress(STEPS * len(plans)) as progress:
        try:
            for plan in plans:
                ours, theirs = spawn.Pipe(duplex=False)
                process = spawn.Process(target=_soak, args=(plan, path, name, theirs))
                process.start()
                theirs.close()
                processes[ours] = (plan, process)
            end = time.monotonic() + max(plan.seconds for plan in plans) + GRACE
            open_pipes = list(processes)
            while open_pipes and time.monotonic() < end:
                for pipe in wait(open_pipes, timeout=1):
                    assert isinstance(pipe, Connection)
                    mode = processes[pipe][0].mode
                    try:
                        said = pipe.recv()
                    except EOFError:
                        open_pipes.remove(pipe)
                        continue
                    if isinstance(said, str):
                        progress.step(f"{mode:10}", said)
                    else:
                        failures[mode] = said
        finally:
            for _, process in processes.values():
                if process.is_alive() and len(failures) < len(plans):
                    process.terminate()
            for _, process in processes.values():
                process.join(GRACE)
    for plan in plans:
        failures.setdefault(plan.mode, ["the soak itself has failed"])
    return failures


def _soak(plan: Plan, path: Path, name: str, pipe: Connection) -> None:
    """One of them, in its process."""
    signal.signal(signal.SIGTERM, _terminated)
    store = Store(path, name)
    said = 0.0

    def say(line: str) -> None:
        nonlocal said
        if time.monotonic() - said >= plan.seconds / STEPS:
            said = time.monotonic()
            pipe.send(line)

    with contextlib.suppress(KeyboardInterrupt):
        try:
            pipe.send(Soak(plan, store, say).run())
        finally:
            store.close()


def _terminated(number: int, frame: FrameType | None) -> None:
    # As an exception, so that the server is stopped on the way out.
    raise SystemExit(128 + number)
