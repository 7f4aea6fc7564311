"""The command line of the load lab."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from loadtests import programs, python_path, store
from loadtests.advise import command as advise
from loadtests.arguments import Parser
from loadtests.commits import footprint, instructions
from loadtests.errors import LabError
from loadtests.replay import command as replay
from loadtests.servers import peers, registry
from loadtests.soak import command as soak
from loadtests.studies import catalogue, docs
from loadtests.studies import command as studies
from loadtests.studies.bench import scenarios
from loadtests.verdict.report import write_error

OF_CLONES = ("docs", "figures", "footprint", "instructions")
"""Commands that need the source, with its documents or its history."""


def _parser() -> argparse.ArgumentParser:
    words = "Measures and compares HTTP servers: by a load of one's own, and by studies of many."
    parser = Parser(prog=programs.COMMAND, description=words)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, run: Callable[[argparse.Namespace], int | None], words: str) -> Parser:
        command: Parser = commands.add_parser(name, help=words)
        command.set_defaults(run=lambda options, _: run(options))
        return command

    replay.add(commands)
    studies.add_compare(commands)
    advise.add(commands)
    studies.add(commands)
    soak.add(commands)
    words = "turn raw results into pages and tables"
    reporting = add("report", lambda one: studies.tell(one, store.load(one.results)), words)
    reporting.add_argument("results", nargs="+", type=Path, metavar="RESULTS")
    studies.add_report(reporting)
    add("peers", _peers, "install the servers we compare with, each by pip")
    add("list", _name_all, "name all servers, scenarios and experiments")
    if programs.INSTALLED:
        return parser
    instructions.add(commands)
    footprint.add(commands)
    words = "draw all figures of the stored results, and those of docs"
    add("figures", lambda _: print("\n".join(docs.figures())), words)
    words = "write the pages of docs that are made from stored results"
    pages = add("docs", lambda options: docs.pages(options.names), words)
    names = " ".join([*docs.MADE, docs.THEN_AND_NOW])
    pages.add_argument("names", nargs="*", metavar="NAME", help=f"of: {names}")
    return parser


def _command(arguments: list[str]) -> str:
    """The command line as it goes into the results.

    It is without the paths of what it writes, and without values of header fields: tokens.
    """
    text = "\0".join([programs.COMMAND, *arguments])
    text = re.sub(r"\0(-H|--header)(=|\0)?([^:\0]+):[^\0]*", r"\0\1 \3:…", text)
    return re.sub(r"\0--(output|page|write)(=|\0)[^\0]*", "", text).replace("\0", " ")


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


def main() -> int:
    """Runs one command; returns the exit code."""
    # Before the first import of the server.
    python_path.prefer_installed()
    if programs.INSTALLED and (asked := {*sys.argv[1:2]} & {*OF_CLONES}):
        where = "in a clone of the source of poorhttp"
        print(f"poorlab: {asked.pop()} is there {where}, as python -m loadtests", file=sys.stderr)
        return 1
    options = _parser().parse_args()
    # As an exception, so that every server is stopped on the way out.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        return int(options.run(options, _command(sys.argv[1:])) or 0)
    except LabError as error:
        if getattr(options, "junit", None):
            write_error(options.junit, sys.argv[1], str(error))
        print(f"{programs.NAME}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # Whoever reads has read enough (`| head`); nothing is left to be written at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print(f"{programs.NAME}: interrupted; what was measured is kept", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
