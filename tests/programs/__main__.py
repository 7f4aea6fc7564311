"""Runs programs under each server and compares them: `python -m tests.programs [NAME …]`.

The exit code is 1 if a program fails under our server, or its clients see something else than under
the reference. Programs whose Debian packages are missing are left out and named.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from tests.packages import lacking
from tests.programs.running import environment
from tests.programs.running.application import MODES, Application, load, names
from tests.programs.running.report import judge, line, table
from tests.programs.running.visit import Place, Visit
from tests.testkit.process import children


def main(arguments: list[str]) -> int:
    """Run the programs that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.programs", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names())}")
    chosen = parser.parse_args(arguments).names or names()
    if unknown := set(chosen) - set(names()):
        parser.error(f"there is no program {', '.join(sorted(unknown))}: {', '.join(names())}")
    cells: dict[str, list[str]] = {}
    failed = False
    for name in chosen:
        application = load(name)
        if missing := [reason for each in application.needs if (reason := lacking(each))]:
            cells[name] = [f"left out: {', '.join(missing)}"]
            print(f"{name:10} {cells[name][0]}", flush=True)
            continue
        try:
            cells[name], is_failed = run(name, application)
        except RuntimeError as error:
            print(error, flush=True)
            cells[name], is_failed = ["FAILED before a server was started"], True
        failed |= is_failed
    print(f"\n{table(cells)}")
    return int(failed)


def run(name: str, application: type[Application]) -> tuple[list[str], bool]:
    """The cells of a program, one for each server, and whether it failed under one of ours."""
    if not environment.is_made(name, application):
        print(f"{name:10} installs {', '.join(environment.distributions(application))}", flush=True)
        environment.make(name, application)
    cells, failed = [], False
    visits: list[Visit] = []
    with ExitStack() as stack:
        top = stack.enter_context(tempfile.TemporaryDirectory(prefix=f"{name}-"))
        place = stack.enter_context(closing(Place(name, application, Path(top))))
        print(f"{name:10} is prepared", flush=True)
        place.prepare()
        for server in (application.reference, *MODES):
            if server in MODES and server not in application.modes:
                cells.append("")
                continue
            print(f"{name:10} {server:10} ", end="", flush=True)
            visit = place.visit(server)
            visits.append(visit)
            failure = judge(visits, visit)
            print(line(visit, failure), flush=True)
            failed |= bool(failure) and server in MODES
            words = [] if server in MODES else [server]
            cells.append(" ".join([*words, "FAILED" if failure else f"{visit.seconds:.1f} s"]))
    return cells, failed


def end(number: int, _: object) -> None:
    """Handle a signal: the servers, which have sessions of their own, end with this process."""
    # Not by `print`, which the signal may have interrupted.
    with suppress(OSError):
        os.write(1, b"\ninterrupted: servers and folders go, complete environments are kept\n")
    sys.exit(128 + number)


def command(arguments: list[str]) -> int:
    """Run it as a command, which signals may end."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, end)
    try:
        return main(arguments)
    finally:
        # One of which the signal came before its block had begun.
        for pid in children(os.getpid()):
            with suppress(OSError):
                os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
