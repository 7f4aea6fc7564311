"""The command `compare A B`: measures two servers, and says which is faster, if that is sure."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from loadtests import programs, store
from loadtests.arguments import add_headers, names, number
from loadtests.errors import LabError
from loadtests.measure import disturbance, machine
from loadtests.measure.cpu_affinity import cores
from loadtests.measure.disturbance import Disturbance
from loadtests.programs import COMMAND
from loadtests.reporting.model import Section
from loadtests.servers import registry
from loadtests.stats.results import Results
from loadtests.stats.verdict import ERROR, LOOKS, ZONE
from loadtests.verdict import report, sides, stored, thresholds
from loadtests.verdict.quantities import QUANTITIES, Quantity
from loadtests.verdict.report import CALMER, Comparison, comparison
from loadtests.verdict.rounds import NAME, Load, Rounds
from loadtests.verdict.thresholds import CONDITION_HOLDS, condition

Publish = Callable[[Path, str, list[Section], Results], bool]
"""Writes a page, and tells whether that was possible."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a comparison of two."""
    group = parser.add_argument_group(
        "two of anything",
        "A and B are commands ('NAME=gunicorn -b {host}:{port} app:app'), URLs, servers of "
        f"`{COMMAND} list`, commits of Poor HTTP in a clone ('.' is the working tree), or files of "
        "results. There is a verdict only if the interval excludes a difference of "
        f"{ZONE * 100:g} %; if they are the same, at most {ERROR * 100:g} % of comparisons say "
        "otherwise.",
    )
    add = group.add_argument
    add(
        "--metric",
        type=_metrics,
        default=list(QUANTITIES),
        metavar="NAME,NAME",
        help=f"what is compared, of: {' '.join(QUANTITIES)}; the first decides (default cpu: CPU "
        "time per request; rate and p99 are about speed)",
    )
    add(
        "--fail-if",
        dest="conditions",
        action="append",
        type=condition,
        default=[],
        metavar="CONDITION",
        help="'p99 > 1.1 * base', 'memory > 80 MiB' or slower (repeatable): exit code "
        f"{CONDITION_HOLDS} if the whole interval says so",
    )
    told = f"a difference up to this counts as none (default {ZONE * 100:g})"
    add("--zone", type=number(0, 100), default=ZONE * 100, metavar="PERCENT", help=told)
    limit = number(1, 86_400)
    told = "end after so many seconds, sure or not (default 180)"
    add("--within", type=limit, default=180.0, metavar="S", help=told)
    whole = number(1, 10_000, kind=int)
    add(
        "--connections",
        type=whole,
        default=Load.connections,
        metavar="N",
        help="at once (default 8)",
    )
    told = "requests per second, sent by the clock (default: as fast as they are answered)"
    add("--rate", type=number(0.1, 1e6), default=0.0, metavar="R", help=told)
    add_headers(add)
    thresholds.add_arguments(add, "verdict")


def _metrics(text: str) -> list[str]:
    chosen = names(text)
    for name in chosen:
        if name not in QUANTITIES:
            raise argparse.ArgumentTypeError(f"{name!r} is none of: {' '.join(QUANTITIES)}")
    return chosen


def run(options: argparse.Namespace, command: str, publish: Publish) -> int:
    """Measures or reads, tells the verdict, writes what was asked for; returns the exit code."""
    words, quantities = options.names, [QUANTITIES[name] for name in options.metric]
    for one in options.conditions:
        if one.sign and one.name not in options.metric:
            raise LabError(f"{one.text!r}: {one.name} is not compared (--metric)")
    page = options.page
    if any(map(sides.is_file, words)):
        found = _stored(words, quantities, options.zone / 100)
        records = store.load(map(Path, words)) if page else []
        shown = [report.section(found)]
    else:
        found, keeping = _measured(words, quantities, options, command)
        page, records = page or keeping.path.with_suffix(".html"), keeping.records
        shown = report.sections(records)
    found = replace(found, conditions=options.conditions)
    print(report.text(found))
    report.write(found, options)
    made = page is None or publish(page, "Compare", shown, Results(records))
    if found.failure:
        print(f"{programs.NAME}: {found.failure}", file=sys.stderr)
        return 1
    code = thresholds.exit_code({o for _, o in found.cases()}, strict=options.strict)
    return code or int(not made)


def _stored(words: list[str], quantities: list[Quantity], zone: float) -> Comparison:
    if not all(map(sides.is_file, words)):
        raise LabError("results are compared with results: name two files, or two servers")
    files = [Path(word) for word in words]
    if len(files) == 1:
        results = Results(store.load(files))
        verdicts = stored.side_by_side(results, quantities, zone)
        names = next(run["sides"] for run in reversed(results.runs) if "sides" in run)
        return comparison(names, verdicts)
    before, after = (Results(store.load([file])) for file in files)
    last: LabError | None = None
    for quantity in quantities:
        try:
            found = stored.apart(before, after, quantity, zone)
        except LabError as error:
            last = last or error
            continue
        told = [
            f"{sum(one.told == word for one in found.values())} {word}"
            for word in dict.fromkeys(one.told for one in found.values())
        ]
        how = (
            f"Runs measured apart, {quantity.title}: {', '.join(told)}. The noise between runs is "
            "estimated from runs of the same server, or from the other servers of both files."
        )
        return Comparison([file.name for file in files], found, [how])
    assert last
    raise last


def _measured(
    words: list[str], quantities: list[Quantity], options: argparse.Namespace, command: str
) -> tuple[Comparison, store.Store]:
    first, second = words
    pair = sides.both((first, second), options)
    keeping = store.begin(options.output, NAME)
    placed = cores()
    os.sched_setaffinity(0, {placed[1]})
    load = Load(options.seconds or Load.seconds, options.connections, options.rate, options.headers)
    rounds = Rounds(
        pair,
        load,
        keeping,
        placed,
        quantities[0],
        options.zone / 100,
        options.rounds or LOOKS[-1],
        options.within,
    )
    servers = [one.server for one in pair]
    about = {"sides": rounds.names, "load": load.words(), "zone": rounds.zone, "seed": rounds.seed}
    keeping.add(
        "run",
        command=command,
        metrics=options.metric,
        seconds=load.seconds,
        server_core=placed[0],
        client_core=placed[1],
        commands={one.name: one.command.replace("~", " ") for one in servers},
        machine=machine.describe(registry.versions(servers)),
        **about,
    )
    before, failure = disturbance.programs(), ""
    try:
        ended = rounds.run()
    except LabError as error:
        if not rounds.samples:
            raise
        ended, failure = "ended by a failure", str(error)
    finally:
        keeping.close()
        print(f"raw results: {keeping.path}", file=sys.stderr)
    busiest = disturbance.busiest(before, rounds.processes)
    verdicts = stored.judged(
        rounds.calm(), rounds.samples, rounds.names, quantities, options.zone / 100
    )
    told = disturbance.told(Disturbance(**one["machine"]) for one in rounds.samples)
    remarks = [
        f"{load.words()}; {ended}, {rounds.seconds:.0f} s.",
        f"In the median sample {told}; left out: "
        f"{(len(rounds.samples) - len(rounds.calm())) // 4} of {len(rounds.samples) // 4} rounds.",
        f"The client used {statistics.median(one['client_busy'] for one in rounds.samples):.0%} of "
        "its core.",
    ]
    if verdicts[0].disturbed:
        remarks.append(f"{CALMER} {busiest}".strip())
    if pair[0].server.own != pair[1].server.own:
        remarks.append("They do not serve the same application, so this is not about servers only.")
    return comparison(rounds.names, verdicts, remarks, failure), keeping
