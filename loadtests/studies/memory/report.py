"""Report of the study `memory`."""

from __future__ import annotations

from collections.abc import Sequence

from loadtests.reporting.model import Axis, Bar, Bars, Cell, Column, Section, Table
from loadtests.stats.results import Results
from loadtests.studies.memory import past
from loadtests.studies.memory.leaks import report as leak_report
from loadtests.studies.memory.lines import report as line_report
from loadtests.studies.memory.order import colour, in_order, ours
from loadtests.studies.memory.over_time import report as time_report
from loadtests.studies.memory.over_time.moments import AFTER, IDLE, LAST, MOMENTS

KIB, MIB = 1 / 2**10, 1 / 2**20
FIELDS = {"pss": "PSS", "uss": "USS", "rss": "RSS", "shared": "shared"}
PRELOAD = " + preload"


def report(results: Results) -> list[Section]:
    """A section for each part that was measured."""
    sections = [_moments(results)] if results.servers(LAST) else []
    for part in (time_report, leak_report, line_report):
        sections += part.sections(results)
    return sections


def _moments(results: Results) -> Section:
    names = in_order(results.servers(LAST))
    return Section(
        "Memory",
        [
            "How much memory does each configuration take that serves the light page: when it has "
            "started and given its first answer, after 10 parallel requests, and after 100 more? "
            "`ps axo size,vsize` counts address space, so what processes share counts once "
            "for each of them. PSS divides a shared page among all processes that map it, USS has "
            "only pages that nobody shares, RSS counts a shared page once for each process; "
            "all over all processes of the server, the main process and a proxy included.",
            *_remarks(results, names),
        ],
        [
            _ps(results, names),
            _pages(results, names),
            _course(results, names),
            _bars(results, names),
            past.table(),
        ],
    )


def _table(
    name: str, title: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], note: str = ""
) -> Table:
    strong = frozenset(str(row[0]) for row in rows if ours(str(row[0])))
    return Table(name, title, [Column("configuration"), *columns], rows, strong, note)


def _ps(results: Results, names: list[str]) -> Table:
    columns = [
        Column("size", "KiB", scale=KIB),
        Column("vsize", "KiB", scale=KIB),
        Column("size, all", "KiB", scale=KIB),
        Column("vsize, all", "KiB", scale=KIB),
        Column("processes"),
        Column("threads"),
    ]
    fields = ("size", "vsize", "sizes", "vsizes", "processes", "threads")
    rows = [[name, *(results.median(LAST, name, field) for field in fields)] for name in names]
    return _table(
        "memory-ps",
        "As ps counts, after 100 parallel requests",
        columns,
        rows,
        "size and vsize are of the largest process. What the study of 2010 reckoned as 4 × size "
        "is measured here: the sum over all processes, of those with four workers too.",
    )


def _pages(results: Results, names: list[str]) -> Table:
    columns = [Column(title, "MiB", 1, MIB) for title in FIELDS.values()]
    rows = [[name, *(results.median(LAST, name, field) for field in FIELDS)] for name in names]
    return _table(
        "memory-pages",
        "Pages, after 100 parallel requests",
        columns,
        rows,
        "PSS depends on who else runs the same Python on the machine; the load lab does.",
    )


def _course(results: Results, names: list[str]) -> Table:
    columns = [
        Column(f"{FIELDS[field]}, {moment}", "MiB", 1, MIB)
        for field in ("pss", "uss")
        for moment in MOMENTS
    ]
    columns += [Column(f"processes, {moment}") for moment in (IDLE, LAST)]
    rows = [
        [
            name,
            *(
                results.median(moment, name, field)
                for field in ("pss", "uss")
                for moment in MOMENTS
            ),
            *(results.median(moment, name, "processes") for moment in (IDLE, LAST)),
        ]
        for name in names
    ]
    return _table("memory-course", "Before and after requests", columns, rows)


def _bars(results: Results, names: list[str]) -> Bars:
    rows = [
        Bar(
            name,
            colour(name),
            [
                found._replace(
                    median=found.median * MIB, low=found.low * MIB, high=found.high * MIB
                )
                if (found := results.median(LAST, name, field))
                else None
                for field in ("pss", "uss")
            ],
            ours(name),
        )
        for name in names
    ]
    return Bars(
        "memory-bars",
        "Memory of all processes",
        Axis("memory", "MiB", low=0),
        rows,
        ("PSS", "USS"),
        subtitle=f"{LAST} parallel requests for the light page",
        caption="Median of the rounds, with the lowest and the highest.",
    )


def _remarks(results: Results, names: list[str]) -> list[str]:
    told = []
    growth = {
        name: after.median - before.median
        for name in names
        if (before := results.median(IDLE, name, "uss"))
        and (after := results.median(LAST, name, "uss"))
    }
    if growth:
        most = max(growth, key=lambda name: growth[name])
        requests = sum(AFTER.values())
        told.append(
            f"Over these {requests} requests USS rises by {growth[most] * KIB:,.0f} KiB at most "
            f"({most}). The study of 2010 saw some hundred bytes."
        )
    for name in names:
        plain = name.removesuffix(PRELOAD)
        shared = results.median(LAST, name, "uss")
        alone = results.median(LAST, plain, "uss")
        if name.endswith(PRELOAD) and shared and alone:
            told.append(
                f"{name} has {shared.median * MIB:.1f} MiB to itself, without preload "
                f"{alone.median * MIB:.1f}."
            )
    told += [f"Failed: {failure['what']}: {failure['reason']}." for failure in results.failures]
    return told
