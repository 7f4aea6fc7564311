"""Report of the study `ordered`: distributions, and the old study's figures beside today's."""

from __future__ import annotations

from collections.abc import Sequence

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
from loadtests.servers.registry import colour_of
from loadtests.stats.results import Results
from loadtests.studies.latency_distribution import witness
from loadtests.studies.latency_distribution.contents import CONTENTS, Content
from loadtests.studies.latency_distribution.distributions import Distributions, distributions
from loadtests.studies.latency_distribution.remarks import failures, remarks
from loadtests.studies.latency_distribution.times import PARTS, QUANTILES
from loadtests.studies.originals import klone_2008 as klone

ASKED = (
    "How long do requests take if so many are made at once, each on a connection of its own: until "
    "the connection is there (connect), from then to the end of the answer (processing), and both "
    "(total)? The requests are ordered by each of these times, so a point at 90 % says that 90 % "
    "of them took no longer. The study of {year} asked this of KLone, lighttpd, Boa and Apache."
)
TODAY = (
    ("ours", ("poorhttp threading 8", "poorhttp single", "poorhttp forking 2", "poorhttp gevent")),
    ("lighttpd", ("lighttpd", "lighttpd + php-cgi", "lighttpd + php-fpm")),
    ("Apache", ("Apache prefork", "Apache event", "Apache event + php-fpm")),
)
"""Whose medians stand beside the study's: of each the first that was measured."""
WITNESS = "Our client and Apache Bench, on the 1.5 KB page"
BANDS = range(0, 101, 10)
"""Percent of the requests for which a curve has its spread."""
WORDS = {"connect": "Connecting", "processing": "Processing", "total": "In all"}


def sections(results: Results) -> list[Section]:
    """What was asked, and a section for each content that was measured or failed."""
    measured = distributions(results)
    text = [ASKED.format(year=klone.YEAR)]
    missing = {one["server"]: one["reason"] for one in results.missing}
    text += [f"Left out: {name} ({reason})." for name, reason in missing.items()]
    beside = [_beside(measured)]
    told = [Section("Times over the ordered requests", text, beside)]
    for content in CONTENTS:
        own = measured.of(content)
        said = remarks(results, content, own)
        parts: list[Table | Figure] = []
        for level in own.levels():
            at_once = own.at(level)
            parts += [_figure(content, level, at_once), _table(content, level, at_once)]
        if parts or said:
            told.append(Section(content.title[0].upper() + content.title[1:], said, parts))
    return [*told, *_witness(results)]


def _witness(results: Results) -> list[Section]:
    """Medians of both clients, and whether they agree."""
    said = failures(results, witness.KIND)
    last = {
        (one["run"], one["at_once"], one["server"]): one
        for one in results.samples
        if "ab_ms" in one
    }
    if not last:
        return [Section(WITNESS, said)] if said else []
    columns = [Column("server"), Column("at once")]
    columns += [
        Column(f"{part}, {who}", "ms", places)
        for part in PARTS
        for who, places in (("fetch", 2), ("ab", 0))
    ]
    columns += [Column("fetch busy", "%", scale=100), Column("ab busy", "%", scale=100)]
    rows: list[list[Cell]] = []
    ratios = []
    for one in last.values():
        row: list[Cell] = [one["server"], float(one["at_once"])]
        row += [one[f"{who}_ms"][part] for part in PARTS for who in ("fetch", "ab")]
        rows.append([*row, one["busy"]["fetch"], one["busy"]["ab"]])
        ours, theirs = one["fetch_ms"]["total"], one["ab_ms"]["total"]
        if not witness.agree(ours, theirs):
            lower, higher = sorted((ours, theirs))
            ratios.append(higher / max(lower, witness.RESOLUTION))
    agreed = f"{len(last) - len(ratios)} of {len(last)}"
    text = (
        f"The medians of the total times differ by no more than ab's millisecond in {agreed} cases."
    )
    if ratios:
        text += f" In the others one is up to {max(ratios):.2f} times the other."
    note = "Medians over the requests of one run each, one after the other with the same server."
    strong = frozenset(str(row[0]) for row in rows if str(row[0]).startswith("poorhttp"))
    table = Table("ordered-witness", WITNESS, columns, rows, strong, note)
    return [Section(WITNESS, [text, *said], [table])]


def _how_many(content: Content, level: int, samples: Distributions) -> str:
    requests = max(one["requests"] for one in samples.records)
    return f"{requests:,} requests, {level:,} at once"


def _figure(content: Content, level: int, samples: Distributions) -> Panels:
    x = Axis("share of the requests, ordered", "%", low=0, high=100)
    panels = [
        Lines(
            f"ordered-{content.name}-{level}-{part}",
            WORDS[part],
            x,
            Axis(f"{part} time", "ms", log=True),
            [_line(samples, server, part) for server in samples.servers()],
        )
        for part in PARTS
    ]
    return Panels(
        f"ordered-{content.name}-{level}",
        f"{content.title}: {_how_many(content, level, samples)}",
        panels,
        caption="Medians of the rounds, and from the lowest to the highest round."
        if samples.rounds() > 1
        else "",
    )


def _line(samples: Distributions, server: str, part: str) -> Line:
    points, band = [], []
    for share, value in samples.curve(server, part):
        points.append((share, value.median))
        if value.rounds > 1 and share in BANDS:
            band.append((share, value.low, value.high))
    return Line(server, colour_of(server), points, band, server.startswith("poorhttp"))


def _table(content: Content, level: int, samples: Distributions) -> Table:
    columns = [Column("server")]
    columns += [Column(f"{part} {name}", "ms", 2) for part in PARTS for name in QUANTILES]
    columns += [
        Column("requests", "/s"),
        Column("CPU per request", "µs", 1),
        Column("failed"),
        Column("repeated SYN"),
    ]
    rows: list[list[Cell]] = []
    for server in samples.servers():
        row: list[Cell] = [server]
        row += [samples.quantile(server, part, name) for part in PARTS for name in QUANTILES]
        row += [samples.field(server, name) for name in ("rate", "cpu_us")]
        row += [float(samples.sum(server, "failed")), float(samples.waited(server))]
        rows.append(row)
    return Table(
        f"ordered-{content.name}-{level}",
        f"{content.title}: {_how_many(content, level, samples)}",
        columns,
        rows,
        strong=frozenset(one for one in samples.servers() if one.startswith("poorhttp")),
        note="Medians of the rounds, with the lowest and the highest; failed requests, and those "
        "that waited for a repeated SYN, of all rounds. CPU: all processes of the server, without "
        "a number where the kernel does not count those that it starts.",
    )


def _beside(measured: Distributions) -> Table:
    """The study's numbers, and medians of today at the most clients at once."""
    names = ("KLone", "Lighttpd", "Boa", "Apache 2")
    columns = [Column("content and time"), *(Column(f"{name}, {klone.YEAR}") for name in names)]
    columns += [
        Column("clients at once today"),
        *(Column(f"{who}, median", "ms", 2) for who, _ in TODAY),
    ]
    rows: list[Sequence[Cell]] = []
    for said in klone.STATEMENTS:
        content = next(one for one in CONTENTS if one.name == said.content)
        own = measured.of(content)
        today: list[Cell] = [None] * (1 + len(TODAY))
        if levels := own.levels():
            most = own.at(levels[-1])
            today = [float(levels[-1])]
            for _, known in TODAY:
                server = next((name for name in known if name in most.servers()), None)
                today.append(most.quantile(server, said.part, "p50") if server else None)
        old = (said.klone, said.lighttpd, said.boa, said.apache)
        rows.append([f"{content.title}: {said.part}", *old, *today])
    return Table(
        "ordered-klone",
        f"What the study of {klone.YEAR} had, in ms",
        columns,
        rows,
        note="The study: 1,000 requests (100 of the file) by Apache Bench over a network, a Xeon "
        "3060; its text, because its diagrams show no numbers. Its active page was KLone's own "
        "kind, with lighttpd running PHP. Of today's servers the first that was measured of: "
        + "; ".join(f"{who}: {', '.join(known)}" for who, known in TODAY)
        + ".",
    )
