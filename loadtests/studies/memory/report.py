"""Report of the study `memory`: use by configuration, then the other parts."""

from __future__ import annotations

from collections.abc import Sequence

from loadtests.reporting.model import Axis, Column, Section, Table
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import tables
from loadtests.studies.memory import by_line, curve, leak
from loadtests.studies.memory.moments import AFTER, IDLE, LAST, MOMENTS
from loadtests.studies.originals import poorhttp_2010

KIB, MIB = 1 / 2**10, 1 / 2**20
FIELDS = {"pss": "PSS", "uss": "USS", "rss": "RSS", "shared": "shared"}
PRELOAD = " + preload"
PS: Sequence[tuple[Column, tables.Value]] = (
    (Column("size of all processes", "KiB", scale=KIB), "sizes"),
    (Column("vsize of all processes", "KiB", scale=KIB), "vsizes"),
    (Column("size of the largest", "KiB", scale=KIB), "size"),
    (Column("vsize of the largest", "KiB", scale=KIB), "vsize"),
    (Column("processes"), "processes"),
    (Column("threads"), "threads"),
)


def report(results: Results) -> list[Section]:
    """A section for each part that was measured."""
    sections = [_moments(results)] if results.servers(LAST) else []
    for part in (curve, leak, by_line):
        sections += part.section(results)
    return sections


def _moments(results: Results) -> Section:
    samples = tables.latest(one for one in results.samples if one["scenario"] in MOMENTS)
    at = {when: [one for one in samples if one["scenario"] == when] for when in MOMENTS}
    pss, uss = (tables.spreads(at[LAST], field, MIB) for field in ("pss", "uss"))
    first = "configuration"
    text = [
        "How much memory does each configuration take that serves the light page: when it has "
        "started and given its first answer, after 10 parallel requests, and after 100 more? "
        "`ps axo size,vsize` counts address space, so what processes share counts once "
        "for each of them. PSS divides a shared page among all processes that map it, USS has "
        "only pages that nobody shares, RSS counts a shared page once for each process; "
        "all over all processes of the server, the main process and a proxy included.",
        *_remarks(at),
        *tables.lost(results),
    ]
    figure = tables.bars(
        "memory-bars",
        "Memory of all processes",
        Axis("memory", "MiB", low=0),
        {"USS": uss, "PSS": pss},
        subtitle=f"{LAST} parallel requests for the light page",
        caption="Median of the rounds, with the lowest and the highest.",
    )
    pages = tables.compared(
        "memory-pages",
        "Memory after 100 parallel requests",
        at[LAST],
        [(Column(title, "MiB", 1, MIB), field) for field, title in FIELDS.items()],
        "PSS",
        note="PSS depends on what else runs the same Python on the machine; the load lab does.",
        first=first,
    )
    ps = tables.compared(
        "memory-ps",
        "As ps counts, after 100 parallel requests",
        at[LAST],
        PS,
        "size of all processes",
        note="What the study of 2010 reckoned as 4 × size is measured here: the sum over all "
        "processes, of those with four workers too.",
        first=first,
    )
    said = tables.answer("Memory (PSS) after 100 parallel requests", pss, "MiB")
    return Section("Memory", text, [figure, pages, _course(at, list(pss)), ps, _then()], said)


def _course(at: dict[str, list[Record]], names: Sequence[str]) -> Table:
    """Memory at each moment, in order of what the requests add."""
    own = {when: tables.by_server(samples) for when, samples in at.items()}
    columns = [(when, field) for field in ("pss", "uss") for when in MOMENTS]
    columns += [(when, "processes") for when in (IDLE, LAST)]
    last = tables.spreads(at[LAST], "pss")
    return Table(
        "memory-course",
        "Before and after requests",
        [
            Column("configuration"),
            *(
                Column(f"{FIELDS[field]}, {when}", "MiB", 1, MIB)
                if field in FIELDS
                else Column(f"processes, {when}")
                for when, field in columns
            ),
        ],
        [
            [name, *(tables.cell(own[when].get(name, []), field) for when, field in columns)]
            for name in tables.ranked(last, names)
        ],
        tables.ours(names),
    )


def _remarks(at: dict[str, list[Record]]) -> list[str]:
    told = []
    before, after = (tables.spreads(at[when], "uss") for when in (IDLE, LAST))
    growth = {name: after[name].median - before[name].median for name in after if name in before}
    if growth:
        most = max(growth, key=lambda name: growth[name])
        told.append(
            f"Over these {sum(AFTER.values())} requests USS rises by {growth[most] * KIB:,.0f} KiB "
            f"at most ({most}). The study of 2010 saw some hundred bytes."
        )
    for name, shared in after.items():
        alone = after.get(name.removesuffix(PRELOAD))
        if name.endswith(PRELOAD) and alone:
            told.append(
                f"{name} has {shared.median * MIB:.1f} MiB to itself, without preload "
                f"{alone.median * MIB:.1f}."
            )
    return told


def _then() -> Table:
    """What the study of 2010 had."""
    return Table(
        "memory-2010",
        "What the study of 2010 had",
        [
            Column("configuration"),
            *(Column(name, "KiB") for name in ("size", "vsize", "4 × size")),
        ],
        [[name, *map(float, sizes)] for name, sizes in poorhttp_2010.SIZES.items()],
        note="Intel Atom N270, 2 GB, Debian Squeeze, 32 bits; Python 2. With lighttpd a proxy and "
        "one server are added up. 4 × size is reckoned as four times the size and that of the "
        "parent process, so what is shared counts four times; but for Forking it is ten times the "
        "size.",
    )
