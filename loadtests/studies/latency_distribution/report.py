"""Report of the study `ordered`: distributions, and the old study's figures beside today's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from loadtests.reporting.model import (
    Axis,
    Cell,
    Column,
    Figure,
    Line,
    Lines,
    Panels,
    Section,
    Table,
)
from loadtests.servers.registry.latency_distribution import everyone
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import tables
from loadtests.studies.latency_distribution import second_client
from loadtests.studies.latency_distribution.contents import CONTENTS, Content
from loadtests.studies.latency_distribution.remarks import failures, remarks, waited
from loadtests.studies.latency_distribution.times import PARTS, QUANTILES, course, quantile
from loadtests.studies.originals import klone_2008

ASKED = (
    "How long do requests take if so many are made at once, each on a connection of its own: until "
    "the connection is there (connect), from then to the end of the answer (processing), and both "
    "(total)? The requests are ordered by each of these times, so a point at 90 % says that 90 % "
    f"of them took no longer. The study of {klone_2008.YEAR} asked this of KLone, lighttpd, Boa "
    "and Apache."
)
TODAY = (
    ("ours", ("poorhttp threading 8", "poorhttp single", "poorhttp forking 2", "poorhttp gevent")),
    ("lighttpd", ("lighttpd", "lighttpd + php-cgi", "lighttpd + php-fpm")),
    ("Apache", ("Apache prefork", "Apache event", "Apache event + php-fpm")),
)
"""Whose medians stand beside the study's: of each the first that was measured."""
CLIENTS = "Our client and Apache Bench, on the 1.5 KB page"
BANDS = range(0, 101, 10)
"""Percent of the requests for which a curve has its spread."""
WORDS = {"connect": "Connecting", "processing": "Processing", "total": "In all"}
RANKING = "total time, median"
VALUES: Sequence[tuple[Column, tables.Value]] = (
    *(
        (Column(f"{part} time, {name}", "ms", 2), quantile(part, name))
        for part in reversed(PARTS)
        for name in QUANTILES
    ),
    (Column("requests", "/s"), "rate"),
    (Column("server CPU per request", "µs", 1), "cpu_us"),
    (Column("failed requests"), tables.total("failed")),
    (Column("waited for a repeated SYN"), waited),
)


def sections(results: Results) -> list[Section]:
    """What was asked, and a section for each content that was measured or failed."""
    samples = tables.latest(one for one in results.samples if "total" in one)
    missing = {one["server"]: one["reason"] for one in results.missing}
    text = [ASKED, *(f"Left out: {name} ({reason})." for name, reason in missing.items())]
    told = [Section("Times over the ordered requests", text, [_beside(samples)])]
    for content in CONTENTS:
        levels = _levels(samples, content)
        said = remarks(results, content, levels)
        parts: list[Table | Figure] = []
        answer = ""
        for level, own in levels.items():
            parts += _compared(content, level, own)
            what = f"{RANKING}, {level:,} at once".capitalize()
            answer = tables.answer(what, tables.spreads(own, quantile("total", "median")), "ms")
        if parts or said:
            title = content.title[0].upper() + content.title[1:]
            told.append(Section(title, said, parts, answer))
    return [*told, *_clients(results)]


def _levels(samples: Iterable[Record], content: Content) -> dict[int, list[Record]]:
    """The samples of a content by number of clients at once, servers in the order of figures."""
    places = {server.name: place for place, server in enumerate(everyone())}
    levels: dict[int, list[Record]] = {}
    for one in sorted(samples, key=lambda s: (s["at_once"], places.get(s["server"], len(places)))):
        if one["scenario"] == f"{content.name}-{one['at_once']}":
            levels.setdefault(one["at_once"], []).append(one)
    return levels


def _compared(content: Content, level: int, samples: Sequence[Record]) -> list[Table | Figure]:
    """Curves and quantiles."""
    requests = max(one["requests"] for one in samples)
    name = f"ordered-{content.name}-{level}"
    title = f"{content.title}: {requests:,} requests, {level:,} at once"
    own = tables.by_server(samples)
    x = Axis("share of the requests, ordered", "%", low=0, high=100)
    panels = [
        Lines(
            f"{name}-{part}",
            WORDS[part],
            x,
            Axis(f"{part} time", "ms", log=True),
            [_line(server, taken, part) for server, taken in own.items()],
        )
        for part in PARTS
    ]
    caption = "Medians of the rounds, and from the lowest to the highest round."
    several = max(map(len, own.values())) > 1
    figure = Panels(f"{name}-curves", title, panels, caption=caption if several else "")
    table = tables.compared(
        name,
        title,
        samples,
        VALUES,
        RANKING,
        note="Medians of the rounds, with the lowest and the highest; failed requests, and those "
        "that waited for a repeated SYN, of all rounds. CPU: all processes of the server, without "
        "a number where the kernel does not count those that it starts.",
    )
    return [figure, table]


def _line(server: str, samples: Sequence[Record], part: str) -> Line:
    found = course(samples, part)
    drawn = tables.line(server, found)
    several = {x for x, one in found if one.rounds > 1}
    return replace(drawn, band=[b for b in drawn.band if b[0] in several and b[0] in BANDS])


def _clients(results: Results) -> list[Section]:
    """Medians of both clients, and whether they agree."""
    said = failures(results, second_client.KIND)
    last = {
        (one["run"], one["at_once"], one["server"]): one
        for one in results.samples
        if "ab_ms" in one
    }
    if not last:
        return [Section(CLIENTS, said)] if said else []
    columns = [Column("server"), Column("at once")]
    columns += [
        Column(f"{part} time, {client}", "ms", places)
        for part in PARTS
        for client, places in (("ours", 2), ("ab", 0))
    ]
    columns += [Column(f"{client} busy", "%", scale=100) for client in ("our client", "ab")]
    rows: list[list[Cell]] = []
    ratios = []
    for one in last.values():
        row: list[Cell] = [one["server"], float(one["at_once"])]
        row += [one[f"{client}_ms"][part] for part in PARTS for client in ("fetch", "ab")]
        rows.append([*row, one["busy"]["fetch"], one["busy"]["ab"]])
        ours, theirs = one["fetch_ms"]["total"], one["ab_ms"]["total"]
        if not second_client.agree(ours, theirs):
            lower, higher = sorted((ours, theirs))
            ratios.append(higher / max(lower, second_client.RESOLUTION))
    agreed = f"{len(last) - len(ratios)} of {len(last)}"
    answer = (
        f"The medians of the total times differ by no more than ab's millisecond in {agreed} cases."
    )
    if ratios:
        answer += f" In the others one is up to {max(ratios):.2f} times the other."
    note = "Medians over the requests of one run each, one after the other with the same server."
    strong = tables.ours(row[0] for row in rows)
    table = Table("ordered-second-client", CLIENTS, columns, rows, strong, note)
    return [Section(CLIENTS, said, [table], answer)]


def _beside(samples: Sequence[Record]) -> Table:
    """The study's numbers, and medians of today at the most clients at once."""
    columns = [Column("content and time")]
    columns += [Column(f"{name}, {klone_2008.YEAR}") for name in klone_2008.SERVERS]
    columns += [Column("clients at once today")]
    columns += [Column(f"{name} today, median", "ms", 2) for name, _ in TODAY]
    rows: list[Sequence[Cell]] = []
    for said in klone_2008.STATEMENTS:
        content = next(one for one in CONTENTS if one.name == said.content)
        today: list[Cell] = [None] * (1 + len(TODAY))
        if levels := _levels(samples, content):
            level, most = list(levels.items())[-1]
            own = tables.by_server(most)
            today = [float(level)]
            for _, known in TODAY:
                server = next((name for name in known if name in own), None)
                median = quantile(said.part, "median")
                today.append(tables.cell(own[server], median) if server else None)
        old = (said.klone, said.lighttpd, said.boa, said.apache)
        rows.append([f"{content.title}: {said.part}", *old, *today])
    return Table(
        "ordered-klone",
        f"What the study of {klone_2008.YEAR} had, in ms",
        columns,
        rows,
        note="The study: 1,000 requests (100 of the file) by Apache Bench over a network, a Xeon "
        "3060; its text, because its diagrams show no numbers. Its active page was KLone's own "
        "kind, with lighttpd running PHP. Of today's servers the first that was measured of: "
        + "; ".join(f"{name}: {', '.join(known)}" for name, known in TODAY)
        + ".",
    )
