"""The command line of the load lab."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

from loadtests import choice, store
from loadtests.advise import command as advise
from loadtests.arguments import Parser, names
from loadtests.errors import LabError
from loadtests.programs import ROOT
from loadtests.servers import peers, registry
from loadtests.soak import report as soak_report
from loadtests.soak import together
from loadtests.soak.run import OPTIONS, Plan
from loadtests.studies import catalogue, docs
from loadtests.studies import command as studies
from loadtests.studies.bench import scenarios


def _minutes(text: str) -> float:
    value = float(text)
    if not 0.1 <= value <= 24 * 60:
        raise argparse.ArgumentTypeError("must be from 0.1 minutes to a day")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m loadtests", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    soaking = commands.add_parser(
        "soak", help="mixed load with every fault at once: nothing may be wrong, nothing may grow"
    )
    soaking.add_argument("--minutes", type=_minutes, default=30.0, metavar="N", help="default 30")
    soaking.add_argument(
        "--modes",
        type=lambda text: names(text.replace(" ", ",")),
        default=["forking", "threading"],
        metavar="MODE,MODE",
        help="all at the same time (default forking,threading)",
    )
    soaking.add_argument(
        "--output", type=Path, metavar="FILE", help="append the raw results here (JSON Lines)"
    )
    reporting = commands.add_parser("report", help="turn raw results into pages and tables")
    reporting.add_argument("results", nargs="+", type=Path, metavar="RESULTS")
    studies.add_report(reporting)
    studies.add(commands)
    advise.add(commands)
    commands.add_parser("figures", help="draw the figures of README and docs from stored results")
    commands.add_parser("peers", help="install the servers we compare with, each by pip")
    commands.add_parser("list", help="name all servers, scenarios and experiments")
    return parser


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
    studies.tell(options, records)


def _name_all() -> None:
    print("servers: " + ", ".join(server.name for server in registry.SERVERS))
    print("scenarios: " + ", ".join(scenario.name for scenario in scenarios.SCENARIOS))
    print("studies: " + " ".join(catalogue.STUDIES))
    for study in catalogue.STUDIES.values():
        if not study.source:
            print(f"servers of {study.name}: {'; '.join(one.name for one in study.servers())}")
        if study.experiments:
            print(f"experiments of {study.name}: {' '.join(study.experiments)}")


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
        if options.command == "soak":
            return _soak(options)
        if options.command == "report":
            _report(options)
        elif options.command == "figures":
            print("\n".join(docs.make()))
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
