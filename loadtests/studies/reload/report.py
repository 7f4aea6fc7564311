"""Report of the experiments `develop`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from loadtests.reporting import faults
from loadtests.reporting.cells import brief
from loadtests.reporting.model import (
    MIB,
    Axis,
    Cell,
    Column,
    Section,
    Table,
    method,
)
from loadtests.servers.projects import KINDS, Kind
from loadtests.servers.registry.reload import MODES, OURS, SERVE, SERVERS
from loadtests.stats.results import Results, Spread, spread
from loadtests.studies import tables
from loadtests.studies.reload.experiments import (
    BURST,
    FULL,
    LIMIT,
    NEVER,
    NOT_WAITED,
    REQUESTS,
    STALE,
    WHEN,
    everyone,
)
from loadtests.studies.reload.promises import SECONDS, fastest_other, memory_ratio

NAME = "develop"
STRONG = frozenset(one.name for one in everyone() if one.ours)
FAULTS = ("refused", "reset", "closed", "5xx", "half-loaded", "backwards")
"""Those that have a column; all of them are listed below the tables."""


def report(results: Results) -> list[Section]:
    """Everyone with all projects; then each project, many saves, cost and memory."""
    return [
        *_compared(results),
        *(section for kind in KINDS.values() for section in _times(results, kind)),
        *_many_saves(results),
        *_cost(results),
        *_memory(results),
        *faults.sections(NAME, results),
        method(METHOD),
    ]


def _count(results: Results, experiment: str, server: str, name: str) -> float:
    return sum(results.values(experiment, server, name))


def _section(
    title: str,
    part: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    answer: str,
    by: str = "",
) -> list[Section]:
    """A table of all that was measured, without the columns in which nothing failed."""
    if not rows:
        return []
    kept = [
        place
        for place, column in enumerate(columns)
        if column.name not in (NEVER, *FAULTS, "otherwise") or any(row[place] for row in rows)
    ]
    table = Table(
        f"{NAME}-{part}",
        "",
        [columns[place] for place in kept],
        [[row[place] for place in kept] for row in rows],
        STRONG,
        ranking=by,
    )
    return [Section(title, parts=[table], answer=answer, detail=True)]


FAILURES = tuple(Column(name) for name in ("requests", "failed", *FAULTS, "otherwise"))
LONGEST = Column("longest request", "ms", 0, 1e3)


def _failures(results: Results, experiment: str, server: str) -> list[Cell]:
    """Cells of FAILURES and LONGEST."""
    kinds = [_count(results, experiment, server, f"failed: {kind}") for kind in FAULTS]
    requests, failed = (_count(results, experiment, server, n) for n in ("requests", "failed"))
    longest = max(results.values(experiment, server, "longest request"), default=None)
    return [requests, failed, *kinds, failed - sum(kinds), longest]


def _saved(results: Results, kind: Kind) -> dict[str, Spread]:
    """The seconds from each save to its first answer, of each server."""
    return {
        one.name: found
        for one in SERVERS
        if (found := spread(results.values(kind.name, one.name, *SECONDS)))
    }


def _compared(results: Results) -> list[Section]:
    """All servers with all projects, and what failed."""
    kinds = [kind for kind in KINDS.values() if _saved(results, kind)]
    found = [_saved(results, kind) for kind in kinds]
    slower: dict[str, Spread] = {}
    for one in SERVERS:
        ratios = [
            saved[one.name].median / saved[OURS.name].median
            for saved in found
            if one.name in saved and OURS.name in saved
        ]
        if ratios:
            mean = statistics.geometric_mean(ratios)
            slower[one.name] = Spread(mean, mean, mean, len(ratios))
    names = [one.name for one in SERVERS if any(one.name in saved for saved in found)]
    if not names:
        return []
    rows: list[list[Cell]] = [
        [
            name,
            slower.get(name),
            *(saved.get(name) for saved in found),
            *(
                sum(_count(results, kind.name, name, what) for kind in kinds)
                for what in ("failed", "requests")
            ),
        ]
        for name in tables.ranked(slower, names)
    ]
    by = Column("of ours, geometric mean", "×", 1)
    times = [Column(kind.title, "ms", 0, 1e3) for kind in kinds]
    columns = [Column("server"), by, *times, Column("failed"), Column("requests")]
    note = "The median save, and from the fastest to the slowest."
    table = Table(f"{NAME}-compared", "", columns, rows, STRONG, note, by.name)
    figure = tables.bars(
        "save-to-answer",
        "From a save to the first answer of the new version",
        Axis("milliseconds from os.replace", log=True),
        {
            kind.title: {name: tables.scaled(one, 1e3) for name, one in saved.items()}
            for kind, saved in zip(kinds, found, strict=True)
        },
        subtitle="The main module and one that it imports, in turn, while requests are sent all "
        "the time",
        caption="The mark is the median save, the line goes from the fastest to the slowest. Lower "
        "is better; a server that polls has a second between two looks.",
    )
    order = [str(row[0]) for row in rows]
    figure = replace(figure, bars=sorted(figure.bars, key=lambda bar: order.index(bar.name)))
    answer = ", ".join(
        f"{brief(saved[OURS.name].median * 1e3)} ms after a save of {kind.title} "
        f"({brief(saved[other].median / saved[OURS.name].median)} times as fast as {other})"
        for kind, saved in zip(kinds, found, strict=True)
        if OURS.name in saved and (other := fastest_other(results, kind))
    )
    answer = f"{OURS.name} answers {answer}." if answer else ""
    return [Section("From a save to the first answer", parts=[figure, table], answer=answer)]


def _times(results: Results, kind: Kind) -> list[Section]:
    """All servers with a project."""
    saved = _saved(results, kind)
    ours = saved.get(OURS.name)
    rows: list[list[Cell]] = []
    for name in tables.ranked(saved, saved):
        found, never = saved[name], _count(results, kind.name, name, NEVER)
        rows.append(
            [
                name,
                found.rounds + never,
                found.median,
                found.high,
                found.median / ours.median if ours else None,
                never,
                *_failures(results, kind.name, name),
            ]
        )
    columns = [
        Column("server"),
        Column("saves"),
        Column("median", "ms", 0, 1e3),
        Column("worst", "ms", 0, 1e3),
        Column("of ours", "×", 1),
        Column(NEVER),
        *FAILURES,
        LONGEST,
    ]
    times = {name: tables.scaled(found, 1e3) for name, found in saved.items()}
    answer = tables.answer("From a save to the first answer", times, "ms")
    return _section(kind.title, kind.name, columns, rows, answer, "median")


def _many_saves(results: Results) -> list[Section]:
    """Ours in each mode, with all sorts of clients."""
    counted = ("saves", "pages", "pages lost", NEVER)
    rows: list[list[Cell]] = [
        [
            one.name,
            *(_count(results, "saves", one.name, name) for name in counted),
            *_failures(results, "saves", one.name),
        ]
        for one in MODES
        if results.values("saves", one.name, "saves")
    ]
    columns = [Column("server"), *map(Column, counted), *FAILURES, LONGEST]
    saves, requests, failed = (
        sum(_count(results, "saves", one.name, name) for one in MODES)
        for name in ("saves", "requests", "failed")
    )
    answer = f"{failed:,.0f} of {requests:,.0f} requests failed during {saves:,.0f} saves."
    return _section("Many saves, in every mode", "saves", columns, rows, answer, "failed")


def _cost(results: Results) -> list[Section]:
    """Bursts of saves that left an old version, and CPU time while nothing changes."""
    idle = {
        one.name: tables.scaled(found, 100)
        for one in SERVERS
        if (found := results.figure("idle", one.name, "share of a core"))
    }
    rows: list[list[Cell]] = []
    for name in tables.ranked(idle, [one.name for one in SERVERS]):
        bursts = _count(results, "quick", name, "bursts")
        if bursts or name in idle:
            stale = _count(results, "quick", name, STALE) if bursts else None
            processes = results.figure("idle", name, "processes")
            rows.append([name, stale, bursts or None, idle.get(name), processes])
    columns = [
        Column("server"),
        Column("stale after a burst"),
        Column("bursts"),
        Column("idle", "% of a core", 2),
        Column("processes"),
    ]
    answer = tables.answer("CPU time while nothing changes", idle, "% of a core")
    return _section("Saves within a second, and rest", "cost", columns, rows, answer, "idle")


def _memory(results: Results) -> list[Section]:
    """PSS of ours beside `serve`, and how much more that is within the rounds."""
    rows: list[list[Cell]] = []
    for kind in KINDS.values():
        for when in WHEN:
            if ratio := memory_ratio(results, kind, when):
                name = f"{kind.name}: pss {when}"
                both = (results.figure("memory", one.name, name) for one in (SERVE, OURS))
                rows.append([f"{kind.title}, {when}", *both, ratio])
    columns = [
        Column("project"),
        Column(SERVE.name, "MiB", 1, MIB),
        Column(OURS.name, "MiB", 1, MIB),
        Column("more", "×", 2),
    ]
    found = [row[-1].median for row in rows if isinstance(row[-1], Spread)]
    answer = found and (
        f"{OURS.name} takes {min(found):.2f} to {max(found):.2f} times the memory of {SERVE.name}."
    )
    return _section("Memory", "memory", columns, rows, answer or "")


METHOD = f"""\
- The server and all its processes have one core, the clients the other, so that the clients take
  nothing from any of them. Ours has most processes, and of two versions one begins while the other
  finishes: it is not helped by that.
- Each round has a new project in a temporary folder, {FULL.saves} saves, and servers take turns. A
  file is written beside the project and put in place by `os.replace`; the time begins before that
  call. It has another number in it each time, of the same length. The main module and one that it
  imports take turns; for Django the main module is the one with the view. The next save comes 0.6
  to 0.9 s after the answer, and up to 1.6 s for servers that look for changes once a second, so
  that they are met at any moment of it; for uWSGI and hupper 1.2 to 2.2 s, since they miss what is
  saved before their first look.
- Meanwhile two clients ask, each 5 ms after its last answer: one with a connection for each
  request, one that keeps its connection and looks whether it lives before it uses it. That is some
  300 requests a second, which leaves the server most of its core: a browser asks less, and more
  would compete with the loading of the new version. It is also how exactly the time is known. A
  request that waits until the new version is there is answered at that moment.
- Failed is a request that is refused or reset, has no or half an answer, none in 10 s, an answer
  that is not 200, or one by a version that was never on disk as a whole: of the modules' numbers,
  which the answer tells, no save left both (`half-loaded`). `backwards` is an answer of an older
  version than somebody had before it was asked. A save is `never` answered if that takes longer
  than {LIMIT:.0f} s.
- gunicorn looks once a second as it comes, and is told of changes where `inotify` is installed:
  both are here. granian is told by `watchfiles`. Flask's and Werkzeug's reloaders poll: with
  `watchdog`, which they would use, they watch all of Python's library, and with its present version
  (7.1) keep a core busy with what they read there themselves.
- `saves`: Flask with SQLAlchemy and pandas; {NOT_WAITED:.0%} of the saves are followed by the next
  one within 50 ms, without waiting for their version; one in three saves both modules. Two clients
  of each sort above, one whose requests take 50 ms, one that sends a body of 40 KB in two parts,
  one that loads pages: the page, then six parts on three connections.
- `quick`: {BURST} saves of equal size within one second, five times a round; stale if the last one
  is not answered in {LIMIT / 2:.0f} s.
- `idle`: 5,000 modules, all of which are imported, so that also servers that only watch what is
  imported watch them. CPU time of all processes for {FULL.seconds:.0f} s, by their own clocks.
- `memory`: PSS of all processes (`smaps_rollup`) in the default mode, after {REQUESTS} requests;
  then after {FULL.remembered} saves and {REQUESTS} more. The ratio is formed within each round.
"""
