"""The command line of `advise`, which finds workers and threads for an application."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from loadtests import programs, store
from loadtests.advise import report
from loadtests.advise.answer import AIMS, ENOUGH, LOAD, Wish, advise
from loadtests.advise.commands import Commands
from loadtests.advise.configuration import MODES, PATIENT, THREADS, Configuration, space
from loadtests.advise.target import Target
from loadtests.advise.trial import EXPERIMENT, Bench, say
from loadtests.advise.workload import from_locust, from_paths, recorded
from loadtests.arguments import add_headers, hint, number
from loadtests.errors import LabError
from loadtests.measure import machine
from loadtests.measure.cpu_affinity import CPUS
from loadtests.reporting.model import Section
from loadtests.servers import registry
from loadtests.servers.registry import given
from loadtests.stats.results import Results
from loadtests.studies.command import publish

BUDGETS = {"tiny": 8.0, "quick": 60.0, "full": 300.0}
USUAL = 120.0
CONNECTIONS = (1, 8, 64)
TIMED_OUT = 3600


def add(commands: Any) -> None:
    summary = "find out which mode, how many workers and threads suit your application"
    command = commands.add_parser(
        EXPERIMENT,
        help=summary,
        description=f"Measures TARGET, to {summary}: for throughput; for p99, at "
        f"{LOAD * 100:.0f} % of the best throughput found or at a given rate; and for memory, "
        f"the least (PSS of all processes) of what reaches {ENOUGH * 100:.0f} % of the best "
        "throughput. Recommends one configuration, writes it as an ini file, and says what limits "
        "the application and what other choices cost.",
    )
    add = command.add_argument
    add("target", nargs="?", default="", metavar="TARGET", help="as for poorhttp serve")
    add("-c", "--config", type=Path, metavar="FILE", help="your configuration, to begin with")
    add("--chdir", default="", metavar="FOLDER", help="as for poorhttp serve")
    add("--pythonpath", action="append", default=[], metavar="FOLDER", help="as for poorhttp serve")
    budgets = command.add_mutually_exclusive_group()
    usual = f"default {USUAL:.0f}"
    budgets.add_argument("--budget", type=number(2, TIMED_OUT), metavar="SECONDS", help=usual)
    const: dict[str, Any] = {"dest": "budget", "action": "store_const"}
    for name, seconds in BUDGETS.items():
        budgets.add_argument(f"--{name}", const=seconds, help=f"{seconds:.0f} seconds", **const)
    asked = command.add_mutually_exclusive_group()
    told = "what is asked for, in turns (repeatable; default /)"
    paths: dict[str, Any] = {"dest": "paths", "action": "append", "metavar": "/PATH"}
    asked.add_argument("--path", "--target", **paths, help=told)
    for flag, told in (
        (
            "--like",
            "an access log (Common, Combined, or ours in JSON): its requests, at the rate of its "
            "busiest minute",
        ),
        ("--requests", "recorded requests: an access log, JSON Lines, or HAR"),
        ("--locustfile", "your Locust file"),
    ):
        asked.add_argument(flag, type=Path, metavar="FILE", help=told)
    add_headers(add)
    told = "the last is the load that counts, the answers are measured under the others, too"
    usual = f"{told} (default {','.join(map(str, CONNECTIONS))})"
    add("--connections", type=_counts, default=CONNECTIONS, metavar="N[,N]", help=usual)
    for flag, least, metavar, told in (
        ("--rate", 0.1, "R", "requests per second at which p99 is asked for"),
        ("--max-memory", 1, "MIB", "advise nothing that takes more"),
    ):
        add(flag, type=number(least, 1e6), default=0.0, metavar=metavar, help=told)
    told = "default: twice the cores, at least 4; of a --command without {threads} "
    told += f"{PATIENT} for each core; never more that compute than there are cores"
    add("--max-workers", type=_count, metavar="N", help=told)
    add("--max-threads", type=_count, metavar="N", help=f"of a worker; default {THREADS[-1]}")
    for flag, dest, kind, known in (
        ("--for", "aims", "aim", AIMS),
        ("--modes", "modes", "mode", MODES),
    ):
        told, two = f"of: {' '.join(known)}; default all", f"{kind},{kind}".upper()
        add(flag, dest=dest, type=_words(kind, known), default=known, metavar=two, help=told)
    usual = f"default {report.FILE}, or the first of poorhttp.2.ini and so on that is not there"
    for flag, told in (
        ("--write", f"the configuration ({usual}: no file is overwritten)"),
        ("--output", "append the raw results here (JSON Lines)"),
        ("--page", "the page (default: beside the results)"),
    ):
        add(flag, type=Path, metavar="FILE", help=told)
    told = "in place of TARGET; {workers} and {threads} are the numbers that are searched for"
    given.add_options(command, told)
    command.set_defaults(run=run)


_count = number(1, 1000, int)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(sorted({_count(word) for word in text.split(",")}))


def _words(kind: str, known: Sequence[str]) -> Any:
    """Reads names between commas, in the order of the known ones."""

    def read(text: str) -> tuple[str, ...]:
        chosen = [word.strip() for word in text.split(",")]
        for word in chosen:
            if word not in known:
                raise argparse.ArgumentTypeError(f"no {kind} is called {word!r}{hint(word, known)}")
        return tuple(one for one in known if one in chosen)

    return read


def run(options: argparse.Namespace, command: str) -> int:
    """Searches, tells the answers and makes the page; returns the exit code."""
    keeping = store.begin(options.output)
    told: list[Section] = []
    try:
        return _advise(options, command, keeping, told)
    finally:
        keeping.close()
        if keeping.lost:
            print(f"{programs.NAME}: {keeping.lost}", file=sys.stderr)
        if keeping.records[1:]:
            page = options.page or keeping.path.with_suffix(".html")
            publish(page, "Advice", told, Results(keeping.records))
            print(f"raw results: {keeping.lost or keeping.path}", file=sys.stderr)


def _advise(
    options: argparse.Namespace, command: str, keeping: store.Store, told: list[Section]
) -> int:
    target: Target | Commands = Commands(given.named(options, MODES))
    if not options.given:
        folders = tuple(options.pythonpath)
        target = Target(options.target, options.config, options.chdir, folders)
    elif options.target or options.config:
        raise LabError("TARGET and --config are for poorhttp: give them, or --command and --url")
    target.check()
    if options.locustfile:
        workload = from_locust(options.locustfile)
    elif file := options.like or options.requests:
        workload = recorded(file, at_its_rate=bool(options.like))
    else:
        at = next((one.target for one in options.given or () if one.target), "/")
        workload = from_paths(options.paths or [at])
    if options.headers and options.locustfile:
        raise LabError("--header is not for a Locust file, which sends its own")
    asked = [one.headed(options.headers) for one in workload.requests]
    workload = replace(workload, requests=asked)
    if options.write and options.write.exists():
        raise LabError(f"{options.write} already exists; it is not overwritten")
    rate, memory = options.rate or workload.rate, int(options.max_memory * 2**20)
    wish = Wish(options.connections, CPUS, rate, memory, options.aims)
    budget, bench = options.budget or USUAL, Bench(target, workload, keeping)
    _begin(bench, command, budget)
    machine.allow_files(max(wish.connections) + 200)
    if isinstance(target, Commands):
        candidates = target.candidates(CPUS, options.max_workers, options.max_threads)
        remarks: list[str] = []
    else:
        candidates, remarks = _everyone(options)
    say(f"{target.words}, {workload.words}: about {budget:.0f} s")
    advice = None
    try:
        advice = advise(bench, candidates, wish, budget)
        advice.remarks += remarks
        for aim, (one, reason) in advice.answers.items():
            about = {"aim": aim, "options": one.values(), "reason": reason}
            keeping.add("note", experiment=EXPERIMENT, server=one.name, **about)
        ini = target.ini(report.recommended(advice), report.reasons(advice))
        written, wanted = "", bool(options.write or not options.given)
        try:
            written = report.write(ini, options.write) if wanted else ""
        except LabError as error:
            advice.remarks.append(f"The configuration is not in a file: {error}.")
        print(report.terminal(advice, target, written))
        return int(wanted and not written)
    finally:
        told += report.sections(Results(keeping.records), advice, workload.words)


def _everyone(options: argparse.Namespace) -> tuple[list[Configuration], list[str]]:
    """All candidates that can run here, and what has to be said about the others."""
    modes, remarks = list(options.modes), []
    if "gevent" in modes and find_spec("gevent") is None:
        modes.remove("gevent")
        remarks = ["Mode gevent was left out: gevent is not installed (pip install gevent)."]
    return space(CPUS, modes, options.max_workers, options.max_threads), remarks


def _begin(bench: Bench, command: str, budget: float) -> None:
    """Stores where and how it is measured."""
    ours = [server for server in registry.SERVERS if server.ours]
    ours = ours if isinstance(bench.target, Target) else []
    registry.require_release(ours)
    if ours and (why := registry.missing(ours[0])):
        raise LabError(f"poorhttp cannot be measured: {why}")
    bench.store.add(
        "run",
        command=command,
        study=EXPERIMENT,
        seconds=budget,
        server_core=None,
        client_core=None,
        commands=bench.target.lines,
        machine=machine.describe(registry.versions(ours)),
        asked=bench.workload.words,
    )
