"""The command line of the load lab."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType

from loadtests import choice, store
from loadtests.advise import command as advise
from loadtests.arguments import Parser
from loadtests.choice import choose
from loadtests.clients.external import wrk
from loadtests.errors import LabError
from loadtests.measure.cpu_affinity import cores
from loadtests.programs import ROOT
from loadtests.servers import peers, registry
from loadtests.servers.registry import lifecycle
from loadtests.soak import report as soak_report
from loadtests.soak import together
from loadtests.soak.run import OPTIONS, Plan
from loadtests.stats.results import Results
from loadtests.studies import catalogue, engine
from loadtests.studies import command as studies
from loadtests.studies.bench import scenarios
from loadtests.studies.lifecycle import experiments as operations
from loadtests.studies.lifecycle import promises, trial
from loadtests.studies.lifecycle import report as operations_report
from loadtests.studies.reload import experiments as development
from loadtests.studies.reload import promises as development_promises
from loadtests.studies.reload import report as development_report

MEASURING = (
    "operate",
    "develop",
)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.1 <= value <= 600:
        raise argparse.ArgumentTypeError("must be from 0.1 to 600 seconds")
    return value


def _minutes(text: str) -> float:
    value = float(text)
    if not 0.1 <= value <= 24 * 60:
        raise argparse.ArgumentTypeError("must be from 0.1 minutes to a day")
    return value


def _rounds(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m loadtests", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def measuring(name: str, summary: str, rounds: int, seconds: float) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=summary, description=summary)
        command.add_argument(
            "--quick", action="store_true", help="few and short rounds, for a look"
        )
        command.add_argument(
            "--rounds",
            type=_rounds,
            metavar="N",
            help=f"default {rounds}" if rounds else "default: what each experiment needs",
        )
        command.add_argument("--seconds", type=_seconds, metavar="S", help=f"default {seconds:g}")
        command.add_argument(
            "--output", type=Path, metavar="FILE", help="append the raw results here (JSON Lines)"
        )
        command.set_defaults(usual=(rounds, seconds))
        return command

    soaking = commands.add_parser(
        "soak", help="mixed load with every fault at once: nothing may be wrong, nothing may grow"
    )
    soaking.add_argument("--minutes", type=_minutes, default=30.0, metavar="N", help="default 30")
    soaking.add_argument(
        "--modes",
        type=lambda text: _names(text.replace(" ", ",")),
        default=["forking", "threading"],
        metavar="MODE,MODE",
        help="all at the same time (default forking,threading)",
    )
    soaking.add_argument(
        "--output", type=Path, metavar="FILE", help="append the raw results here (JSON Lines)"
    )
    operating = measuring(
        "operate", "reload, upgrade, recycle, kill, time out and stop servers under load", 0, 30.0
    )
    operating.add_argument(
        "names", nargs="*", metavar="EXPERIMENT", help=f"of: {' '.join(operations.TRIALS)}"
    )
    operating.add_argument(
        "--servers", type=_names, metavar="NAME,NAME", help="names or beginnings; default all"
    )
    developing = measuring(
        "develop", "save files of projects, and see when servers that reload answer anew", 0, 15.0
    )
    developing.add_argument(
        "names", nargs="*", metavar="EXPERIMENT", help=f"of: {' '.join(development.EXPERIMENTS)}"
    )
    developing.add_argument(
        "--servers", type=_names, metavar="NAME,NAME", help="names or beginnings; default all"
    )
    reporting = commands.add_parser("report", help="turn raw results into pages and tables")
    reporting.add_argument("results", nargs="+", type=Path, metavar="RESULTS")
    reporting.add_argument(
        "--operations", action="store_true", help="the page of servers in operation, instead"
    )
    reporting.add_argument(
        "--development", action="store_true", help="the page of servers that reload, instead"
    )
    studies.add_report(reporting)
    studies.add(commands)
    advise.add(commands)
    commands.add_parser("peers", help="install the servers we compare with, each by pip")
    commands.add_parser("list", help="name all servers, scenarios and experiments")
    return parser


def _measure(options: argparse.Namespace) -> int:
    wrk.version()
    rounds, seconds = (1, 1.0) if options.quick else options.usual
    run = store.now()
    path = options.output or store.new_path(run)
    server_core, client_core = cores()
    results = store.Store(path.resolve(), run)
    lab = engine.Lab(
        results, options.seconds or seconds, options.rounds or rounds, server_core, client_core
    )
    known: dict[str, Callable[[], list[engine.Step]]] = {}
    if options.command == "operate":
        scale = trial.QUICK if options.quick else trial.FULL
        if options.seconds:
            scale = replace(scale, seconds=options.seconds)
        chosen_ones = choose("server", lifecycle.SERVERS, options.servers or [""])
        known = {
            name: partial(operations.steps, lab, scale, name, chosen_ones)
            for name in operations.TRIALS
        }
    elif options.command == "develop":
        pace = development.QUICK if options.quick else development.FULL
        if options.seconds:
            pace = replace(pace, seconds=options.seconds)
        reloading = choose("server", development.everyone(), options.servers or [""])
        known = {
            name: partial(development.steps, lab, pace, name, reloading)
            for name in development.EXPERIMENTS
        }
    unknown = [name for name in options.names if name not in known]
    if unknown:
        raise choice.unknown("experiment", unknown[0], list(known), " ")
    planned = [step for name in options.names or known for step in known[name]()]
    # The lab itself keeps off the server's core.
    os.sched_setaffinity(0, {client_core})
    try:
        engine.run(lab, planned, _command(sys.argv[1:]), with_wrk=True)
    finally:
        results.close()
        if path.exists():
            shown = Results([r for r in store.load([path]) if r["run"] == run])
            if shown.samples or shown.figures:
                pages = {
                    "operate": operations_report,
                    "develop": development_report,
                }
                print("\n".join(pages[options.command].summary(shown)))
                for table in (
                    promises.table(shown),
                    development_promises.table(shown),
                ):
                    if len(table) > 2:
                        print("\n" + "\n".join(table))
            print(f"\nraw results: {path}", file=sys.stderr)
    return 0


def _soak(options: argparse.Namespace) -> int:
    unknown = [mode for mode in options.modes if mode not in OPTIONS]
    if unknown:
        raise choice.unknown("mode", unknown[0], list(OPTIONS), " ")
    run = store.now()
    path = (options.output or store.new_path(run)).resolve()
    plans = [Plan.of(mode, options.minutes * 60) for mode in options.modes]
    failures = together.run(plans, path, run)
    records = [record for record in store.load([path]) if record["run"] == run]
    print("\n".join(soak_report.table(soak_report.results(records))))
    print(f"\nraw results: {path}", file=sys.stderr)
    for mode, found in failures.items():
        for failure in found:
            print(f"loadtests: {mode}: {failure}", file=sys.stderr)
    return int(any(failures.values()))


def _command(arguments: list[str]) -> str:
    """The command line as it goes into the results: without the paths of what it writes."""
    kept = []
    skip = False
    for argument in arguments:
        if not skip and not argument.startswith(("--output=", "--page=", "--write=")):
            skip = argument in ("--output", "--page", "--write")
            kept += [] if skip else [argument]
        else:
            skip = False
    return " ".join(["python -m loadtests", *kept])


def _report(options: argparse.Namespace) -> None:
    records = store.load(options.results)
    if soaks := soak_report.results(records):
        print(soak_report.markdown(soaks, options.figures or ROOT / "docs" / "reliability"), end="")
        return
    results = Results(records)
    pages = (
        (options.operations, operations_report),
        (options.development, development_report),
    )
    if made := next((page for asked, page in pages if asked), None):
        if options.into:
            made.insert(results, options.into)
        else:
            print(made.markdown(results), end="")
        return
    studies.tell(options, records)


def _name_all() -> None:
    print("servers: " + ", ".join(server.name for server in registry.SERVERS))
    print("scenarios: " + ", ".join(scenario.name for scenario in scenarios.SCENARIOS))
    print("servers to operate: " + ", ".join(one.name for one in lifecycle.SERVERS))
    print("experiments to operate them: " + " ".join(operations.TRIALS))
    print("studies: " + " ".join(catalogue.STUDIES))
    for study in catalogue.STUDIES.values():
        if not study.source:
            print(f"servers of {study.name}: {'; '.join(one.name for one in study.servers())}")
        if study.experiments:
            print(f"experiments of {study.name}: {' '.join(study.experiments)}")
    print("servers to develop with: " + "; ".join(one.name for one in development.everyone()))
    print("experiments to develop with them: " + " ".join(development.EXPERIMENTS))


def _terminated(number: int, frame: FrameType | None) -> None:
    # As an exception, so that every server is stopped on the way out.
    raise SystemExit(128 + number)


def main() -> int:
    """Runs one command; returns the exit code."""
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, _terminated)
    try:
        if studies.is_one(options.command):
            return studies.measure(options, _command(sys.argv[1:]))
        if options.command == advise.COMMAND:
            return advise.run(options, _command(sys.argv[1:]))
        if options.command in MEASURING:
            return _measure(options)
        if options.command == "soak":
            return _soak(options)
        if options.command == "report":
            _report(options)
        elif options.command == "peers":
            peers.install(lambda line: print(line, file=sys.stderr, flush=True))
        else:
            _name_all()
    except LabError as error:
        print(f"loadtests: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("loadtests: interrupted; what was measured is kept", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
