"""The study `websocket`: CPU time of a message, memory of idle WebSockets, and protocol cases."""

from __future__ import annotations

import contextlib
import json
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from loadtests.clients.load import Load
from loadtests.clients.native import websocket
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import resources
from loadtests.measure.machine import allow_files
from loadtests.reporting.model import Column, Section, Table, method
from loadtests.reporting.promises import Places, Promise, mode
from loadtests.servers.registry import Server
from loadtests.servers.registry.wire import SOCKETS, WEBSOCKET
from loadtests.stats.results import Results
from loadtests.studies import comparison, engine, tables
from loadtests.studies.bench.scenarios import Scenario
from loadtests.studies.comparison import P99, median
from loadtests.studies.engine import Lab, Step, Trial
from loadtests.studies.study import FULL, QUICK, TINY, Scale, Study, scales
from loadtests.studies.websocket import cases
from loadtests.studies.websocket.cases import NOT_STRICT, OK, Case

CONNECTIONS = 64
SIZES = {"echo32": 32, "echo4096": 4096}
"""Bytes of a message by scenario."""
ECHO, IDLE, CASES = "echo", "idle", "cases"
EXPERIMENTS = (ECHO, IDLE, CASES)
TRIES = 8
WARM = 20
"""WebSockets that are open before memory is looked at."""


@dataclass(frozen=True)
class Echo(Scenario):
    """A scenario in which messages of `size` bytes are echoed on WebSockets."""

    size: int = 0

    def drive(self, port: int, seconds: float, core: int | None) -> Load:
        """Has them echoed; the requests of the load are messages."""
        load = websocket.drive(port, seconds, self.connections, self.size, self.target, core)
        if not load.requests and not load.is_silent:
            raise ServerFailure(f"no handshake or no message succeeded: {load.errors}")
        return load


def echo(lab: Lab, servers: Sequence[Server]) -> list[Step]:
    """Messages of each size, with 64 connections."""

    def scenario(name: str, size: int, server: Server) -> Echo:
        what = name, f"{size} bytes", server.application or SOCKETS, CONNECTIONS
        return Echo(*what, size=size, compared=False)

    asked = [{one: scenario(*kind, one) for one in servers} for kind in SIZES.items()]
    return engine.steps(lab, asked, ECHO)


def idle(trial: Trial, count: int) -> str:
    """What so many WebSockets on which nothing happens add to private memory, and to threads."""
    allow_files(count + WARM + 200)
    with trial.running() as running, contextlib.ExitStack() as stack:
        opened = []

        def look() -> tuple[resources.Memory, int]:
            processes = running.processes()
            return resources.memory(processes), resources.threads(processes)

        def open_sockets(more: int) -> None:
            for _ in range(more):
                opened.append(stack.enter_context(cases.upgraded(running.port)))

        try:
            open_sockets(WARM)
            before, threads = look()
            open_sockets(count)
            time.sleep(0.5)
            after, more = look()
            verdicts = [cases.run(cases.HELLO, one) for one in opened[:: max(count // 20, 1)]]
        except (OSError, LabError) as error:
            running.processes()
            raise ServerFailure(f"with {len(opened):,} WebSockets open: {error}") from None
    if not all(verdict.startswith(cases.OK) for verdict in verdicts):
        raise ServerFailure(f"afterwards echoes were: {dict(Counter(verdicts))}")
    each = (after.uss - before.uss) / count
    trial.sample(
        scenario=IDLE,
        requests=count,
        errors={},
        each=each,
        threads=(more - threads) / count,
        uss=after.uss,
        processes=after.processes,
    )
    return f"{each / 1024:,.1f} KiB and {(more - threads) / count:.1f} threads per WebSocket"


def take_cases(trial: Trial, chosen: list[Case]) -> str:
    """The verdict of each case, each on a WebSocket of its own."""
    verdicts = {}
    with trial.running() as running:
        for case in chosen:
            try:
                verdicts[case.number] = _verdict(case, running.port)
            except (OSError, LabError) as error:
                running.processes()
                if not verdicts:
                    raise ServerFailure(str(error)) from None
                verdicts[case.number] = f"{cases.FAILED}, {error}"
    trial.note("verdicts", json.dumps(verdicts))
    counts = Counter(verdicts.values())
    trial.figure("cases", len(verdicts))
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())


def _verdict(case: Case, port: int) -> str:
    """The best of several tries: the two threads of simple-websocket race when they send."""
    found = set()
    for _ in range(TRIES):
        began = time.monotonic()
        with cases.upgraded(port) as connection:
            found.add(cases.run(case, connection))
        # What hangs is no race.
        if found & {cases.OK, cases.ANY} or time.monotonic() - began > cases.LONG:
            break
    return min(
        found, key=lambda verdict: (cases.FAILED in verdict, "," in verdict, verdict != cases.OK)
    )


NAME = "websocket"
PEER = "gunicorn gthread"
"""The one whose verdicts ours must have."""
CATEGORIES = {
    "1": "framing",
    "2": "pings and pongs",
    "3": "reserved bits",
    "4": "opcodes",
    "5": "fragmentation",
    "6": "UTF-8",
    "7": "close",
    "9": "limits",
    "10": "others",
}
SCALES = scales(
    *(FULL, QUICK, TINY),
    # Idle WebSockets.
    sockets=(5_000, 1_000, 20),
    # Bytes that a protocol case sends at most; 0: any number.
    most=(0, 1 << 18, 1 << 9),
)


def plan(lab: Lab, scale: Scale, chosen: Sequence[Server], options: Namespace) -> list[Step]:
    """The chosen experiments, one after the other; all but the echoes once."""
    takes = {
        IDLE: partial(idle, count=scale.amounts.sockets),
        CASES: partial(take_cases, chosen=cases.cases(scale.amounts.most)),
    }
    once = replace(lab, rounds=1)
    return [
        step
        for name in options.names
        for step in (
            echo(replace(lab, rounds=scale.rounds), chosen)
            if name == ECHO
            else engine.rounds(once, name, chosen, takes[name])
        )
    ]


def _verdicts(results: Results) -> dict[str, dict[str, str]]:
    """Of each server the verdicts by case, of its last run."""
    return comparison.noted(results, CASES, "verdicts")


def _differing(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """Cases that are right on one and not on the other; whether strictly is a race of threads."""

    def right(verdict: str) -> str:
        return OK if verdict in (OK, NOT_STRICT) else verdict

    both = ours.keys() & theirs.keys()
    return [number for number in both if right(ours[number]) != right(theirs[number])]


def _unlike(results: Results) -> Places:
    """How many verdicts on ours are other than those on the peer."""
    found = _verdicts(results)
    return {
        mode(one.name): tables.once(len(_differing(found[one.name], found[PEER])))
        for one in WEBSOCKET
        if one.ours and found.keys() >= {one.name, PEER}
    }


CPU = median("cpu_us", "CPU per message", "µs", 2)
RATE = median("rate", "messages", "/s", highest=True)
IDLES = (
    median("each", "private memory per WebSocket", "KiB", 1, 2**-10),
    median("threads", "threads per WebSocket", "", 1),
    median("uss", "private memory of all", "MiB", 1, 2**-20),
)


def report(results: Results) -> list[Section]:
    """CPU of a message, memory of idle ones, and verdicts."""
    echoes = {f"{name}-{CONNECTIONS}": f"{size:,} bytes" for name, size in SIZES.items()}
    title = f"Messages echoed on {CONNECTIONS} WebSockets"
    told = comparison.sections(results, (NAME, title, echoes, (CPU, RATE, P99)), limits=True)
    if results.servers(IDLE):
        count = max(one["requests"] for one in results.samples if one["scenario"] == IDLE)
        title = f"{count:,} idle WebSockets"
        told.append(comparison.section(results, f"{NAME}-idle", title, {IDLE: ""}, IDLES))
    told += _cases(_verdicts(results))
    details = (CPU.with_range(), RATE.with_range(), *comparison.DETAILS[2:])
    how = method(__file__, CONNECTIONS=CONNECTIONS, TRIES=TRIES)
    return told + comparison.ending(results, NAME, echoes, details, how)


def _cases(found: Mapping[str, Mapping[str, str]]) -> list[Section]:
    if not found:
        return []

    def counted(server: str, category: str) -> str:
        those = (one for at, one in found[server].items() if at.partition(".")[0] == category)
        return ", ".join(f"{count} {verdict}" for verdict, count in Counter(those).items())

    parts = [
        Table(
            f"{NAME}-cases",
            "Verdicts by category",
            [Column("category"), *map(Column, found)],
            [[words, *(counted(one, at) for one in found)] for at, words in CATEGORIES.items()],
        )
    ]
    numbers = dict.fromkeys(number for own in found.values() for number in own)
    if other := [
        [number, *(own.get(number) for own in found.values())]
        for number in numbers
        if len({own[number] for own in found.values() if number in own}) > 1
    ]:
        columns = [Column("case"), *map(Column, found)]
        title = "Cases on which the verdicts differ"
        parts.append(Table(f"{NAME}-differing", title, columns, other))
    strict = {server: sum(one == OK for one in own.values()) for server, own in found.items()}
    best = ", ".join(f"{server} {n} of {len(found[server])}" for server, n in strict.items())
    title = "Protocol cases of the Autobahn test suite"
    return [Section(title, parts=parts, answer=f"Strictly right: {best}.")]


STUDY = Study(
    NAME,
    "CPU of a message on a WebSocket, memory of idle ones, and protocol cases",
    "",
    lambda: WEBSOCKET,
    plan,
    report,
    promises=(Promise(CASES, f"verdicts other than on {PEER}", 0, "", _unlike, places=0),),
    experiments=EXPERIMENTS,
    scales=SCALES,
)
