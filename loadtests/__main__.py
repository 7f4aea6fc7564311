"""The command line of the load lab."""

from __future__ import annotations

import argparse
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from loadtests import store
from loadtests.advise import command as advise
from loadtests.arguments import Parser, names, number, unknown
from loadtests.errors import LabError
from loadtests.programs import ROOT
from loadtests.servers import peers, registry
from loadtests.soak import report as soak_report
from loadtests.soak import together
from loadtests.soak.run import OPTIONS, Plan
from loadtests.studies import catalogue, docs
from loadtests.studies import command as studies
from loadtests.studies.bench import scenarios

_minutes = number(0.1, 24 * 60, problem="must be from 0.1 minutes to a day")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m loadtests", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, run: Callable[[argparse.Namespace], int | None], words: str) -> Parser:
        command: Parser = commands.add_parser(name, help=words)
        command.set_defaults(run=lambda options, _: run(options))
        return command

    words = "mixed load with every fault at once: nothing may be wrong, nothing may grow"
    soaking = add("soak", _soak, words)
    soaking.add_argument("--minutes", type=_minutes, default=30.0, metavar="N", help="default 30")
    soaking.add_argument(
        "--modes",
        type=lambda text: names(text.replace(" ", ",")),
        default=["forking", "threading"],
        metavar="MODE,MODE",
        help="all at the same time (default forking,threading)",
    )
    words = "append the raw results here (JSON Lines)"
    soaking.add_argument("--output", type=Path, metavar="FILE", help=words)
    reporting = add("report", _report, "turn raw results into pages and tables")
    reporting.add_argument("results", nargs="+", type=Path, metavar="RESULTS")
    studies.add_report(reporting)
    studies.add(commands)
    advise.add(commands)
    add("figures", _figures, "draw the figures of README and docs from stored results")
    add("peers", _peers, "install the servers we compare with, each by pip")
    add("list", _name_all, "name all servers, scenarios and experiments")
    return parser


def _soak(options: argparse.Namespace) -> int:
    for mode in options.modes:
        if mode not in OPTIONS:
            raise unknown("mode", mode, list(OPTIONS), " ")
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
    text = "\0".join(["python -m loadtests", *arguments])
    return re.sub(r"\0--(output|page|write)(=|\0)[^\0]*", "", text).replace("\0", " ")


def _report(options: argparse.Namespace) -> None:
    records = store.load(options.results)
    if soaks := soak_report.results(records):
        print(soak_report.markdown(soaks, options.figures or ROOT / "docs" / "reliability"), end="")
        return
    studies.tell(options, records)


def _figures(_: argparse.Namespace) -> None:
    print("\n".join(docs.make()))


def _peers(_: argparse.Namespace) -> None:
    peers.install(lambda line: print(line, file=sys.stderr, flush=True))


def _name_all(_: argparse.Namespace) -> None:
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
        return int(options.run(options, _command(sys.argv[1:])) or 0)
    except LabError as error:
        print(f"loadtests: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("loadtests: interrupted; what was measured is kept", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
