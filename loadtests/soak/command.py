"""The command `soak`: several soaks at the same time, each in a process of its own."""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import signal
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from loadtests import programs, store
from loadtests.arguments import names, number, unknown
from loadtests.measure import disturbance, machine
from loadtests.reporting import markdown
from loadtests.reporting.progress import Progress
from loadtests.servers import registry
from loadtests.soak import report
from loadtests.soak.run import OPTIONS, Plan, Soak

#: Longer than this a soak takes no more to end, when its load is over.
GRACE = 900.0

#: How often a soak says how it goes.
STEPS = 60

_minutes = number(0.1, 24 * 60, problem="must be from 0.1 minutes to a day")


def add(commands: Any) -> None:
    words = "mixed load with every fault at once: nothing may be wrong, nothing may grow"
    parser = commands.add_parser("soak", help=words)
    parser.add_argument("--minutes", type=_minutes, default=30.0, metavar="N", help="default 30")
    parser.add_argument(
        "--modes",
        type=lambda text: names(text.replace(" ", ",")),
        default=["threading", "asyncio"],
        metavar="MODE,MODE",
        help="all at the same time (default threading,asyncio)",
    )
    words = "append the raw results here (JSON Lines)"
    parser.add_argument("--output", type=Path, metavar="FILE", help=words)
    parser.set_defaults(run=soak)


def soak(options: argparse.Namespace, command: str) -> int:
    """Runs it and tells the outcome; returns the exit code."""
    for mode in options.modes:
        if mode not in OPTIONS:
            raise unknown("mode", mode, list(OPTIONS), " ")
    plans = [Plan(mode, options.minutes * 60) for mode in options.modes]
    machines = machine.describe(registry.versions([one for one in registry.SERVERS if one.ours]))
    keeping = store.begin(options.output)
    path, run = keeping.path, keeping.run
    keeping.add(
        "run",
        command=command,
        study=report.NAME,
        scale=f"{options.minutes:g} minutes",
        commands={m: " ".join(["poorhttp serve --mode", m, *OPTIONS[m]]) for m in options.modes},
        machine=machines,
    )
    keeping.close()
    disturbance.adopt()
    before = disturbance.read()
    failures = _together(plans, path, run)
    with contextlib.closing(store.Store(path, run)) as keeping:
        keeping.add("done", what=report.NAME, machine=disturbance.since(before).record())
    records = [record for record in store.load([path]) if record["run"] == run]
    print(markdown.tables(report.sections(records)[:1]))
    print(f"\nraw results: {path}", file=sys.stderr)
    for mode, found in failures.items():
        for failure in found:
            print(f"{programs.NAME}: {mode}: {failure}", file=sys.stderr)
    return int(any(failures.values()))


def _together(plans: Sequence[Plan], path: Path, run: str) -> dict[str, list[str]]:
    """Run the plans and show how they go; returns for each mode what was wrong."""
    spawn = multiprocessing.get_context("spawn")
    failures = {plan.mode: ["the soak itself has failed"] for plan in plans}
    processes = []
    said: dict[Any, str] = {}
    # The rests between the load take some time as well.
    limit = max(plan.seconds for plan in plans) + GRACE
    with Progress(STEPS * len(plans), limit) as progress:
        try:
            for plan in plans:
                ours, theirs = spawn.Pipe(duplex=False)
                processes.append(spawn.Process(target=_soak, args=(plan, path, run, theirs)))
                processes[-1].start()
                theirs.close()
                said[ours] = plan.mode
            end = time.monotonic() + limit
            while said and time.monotonic() < end:
                for pipe in wait(list(said), timeout=1):
                    assert isinstance(pipe, Connection)
                    try:
                        what = pipe.recv()
                    except EOFError:
                        del said[pipe]
                        continue
                    if isinstance(what, str):
                        progress.step(f"{said[pipe]:10}", what)
                    else:
                        failures[said[pipe]] = what
        finally:
            for process in processes:
                if said:
                    process.terminate()
                process.join(GRACE)
    return failures


def _soak(plan: Plan, path: Path, run: str, pipe: Connection) -> None:
    """One of them, in its process."""
    # As an exception, so that the server is stopped on the way out.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    # The exit code of a main process that has taken over.
    disturbance.adopt()
    keeping = store.Store(path, run)
    said = 0.0

    def say(line: str) -> None:
        nonlocal said
        if time.monotonic() - said >= plan.seconds / STEPS:
            said = time.monotonic()
            pipe.send(line)

    with contextlib.suppress(KeyboardInterrupt), contextlib.closing(keeping):
        pipe.send(Soak(plan, keeping, say).run())
