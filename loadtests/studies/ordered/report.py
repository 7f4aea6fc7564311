"""Report of the study `ordered`: distributions of response times, beside the figures of 2008."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from loadtests.clients.load import SATURATED
from loadtests.measure import histogram
from loadtests.reporting.model import Axis, Cell, Column, Line, Lines, Panels, Section, Table
from loadtests.servers.registry.studies import NOT_CGI, ORDERED
from loadtests.stats.results import Results, spread
from loadtests.store import Record
from loadtests.studies import originals, tables
from loadtests.studies.ordered import second_client
from loadtests.studies.ordered.measuring import CONTENTS, PARTS, REPEATS, Content

ASKED = (
    "How long do requests take if so many arrive at once, each on a connection of its "
    "own: until "
    "the connection is there (connect), from then to the end of the answer (processing), and both "
    "(total)? The requests are ordered by each of these times, so a point at 90 % says that 90 % "
    "of them took no longer. The study of 2008 asked this of KLone, lighttpd, Boa "
    "and Apache."
)
TODAY = (
    ("ours", ("poorhttp threading 8", "poorhttp single", "poorhttp forking 2", "poorhttp gevent")),
    ("lighttpd", ("lighttpd", "lighttpd + php-cgi", "lighttpd + php-fpm")),
    ("Apache", ("Apache prefork", "Apache event", "Apache event + php-fpm")),
)
"""Whose medians stand beside the study's: of each the first that was measured."""
CLIENTS = "Our client and Apache Bench, on the 1.5 KB page"
SHARES = (0.0, 0.5, 1.0, *(2.0 * share for share in range(1, 50)), 99.0, 99.5, 100.0)
"""Percent of the requests, ordered by their time, that a curve has a point for."""
QUANTILES = {"median": 50.0, "p90": 90.0, "p99": 99.0, "longest": 100.0}
BANDS = range(0, 101, 10)
"""Percent of the requests for which a curve has its spread."""
WORDS = {"connect": "Connecting", "processing": "Processing", "total": "In all"}
RANKING = "total time, median"
MANY = 100
"""Clients at once from which on the client takes notable time to begin all connections."""


@functools.lru_cache(maxsize=4096)
def curve(encoded: str) -> dict[float, float]:
    """Milliseconds within which so many percent of the requests of a histogram were done."""
    found = histogram.merge([encoded]).get_percentile_to_value_dict(list(SHARES))
    return {share: value / 1e3 for share, value in found.items()}


def quantile(part: str, name: str) -> tables.Value:
    """Milliseconds within which so many requests were done, over the rounds."""
    share = QUANTILES[name]
    return lambda samples: spread(curve(one[part])[share] for one in samples if one["answered"])


def _counted(samples: Sequence[Record], field: str) -> Counter[str]:
    return sum((Counter(one[field]) for one in samples), Counter())


VALUES: Sequence[tuple[Column, tables.Value]] = (
    *(
        (Column(f"{part} time, {name}", "ms", 2), quantile(part, name))
        for part in reversed(PARTS)
        for name in QUANTILES
    ),
    (Column("requests", "/s"), "rate"),
    (Column("server CPU per request", "µs", 1), "cpu_us"),
    (Column("failed requests"), tables.total("failed")),
    (Column("waited for a repeated SYN"), lambda s: float(_counted(s, "repeated_syn").total())),
)
Levels: TypeAlias = Mapping[int, list[Record]]
"""The samples of a content by number of clients at once, servers in the order of figures."""


def sections(results: Results) -> list[Section]:
    """What was asked, and a section for each content that was measured or failed."""
    levels = _levels(tables.latest(one for one in results.samples if "total" in one))
    missing = {one["server"]: one["reason"] for one in results.missing}
    text = [ASKED, *(f"Left out: {name} ({reason})." for name, reason in missing.items())]
    told = [Section("Times over the ordered requests", text, [_beside(levels)])]
    for content in CONTENTS:
        own = levels[content.name]
        said = [*_remarks(content, own), *_failures(results, content.name)]
        parts: list[Table | Panels] = []
        answer = ""
        for level, samples in own.items():
            parts += _compared(content, level, samples)
            what = f"{RANKING}, {level:,} at once".capitalize()
            answer = tables.answer(what, tables.spreads(samples, quantile("total", "median")), "ms")
        if parts or said:
            title = content.title[0].upper() + content.title[1:]
            told.append(Section(title, said, parts, answer))
    return [*told, *_clients(results)]


def _levels(samples: Iterable[Record]) -> Mapping[str, Levels]:
    places = {server.name: place for place, server in enumerate(ORDERED)}
    levels: dict[str, dict[int, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(samples, key=lambda s: (s["at_once"], places.get(s["server"], len(places)))):
        content = one["scenario"].rpartition("-")[0]
        levels[content][one["at_once"]].append(one)
    return levels


def _remarks(content: Content, levels: Levels) -> list[str]:
    said: list[str] = []
    busy: list[str] = []
    for level, samples in levels.items():
        for server, own in tables.by_server(samples).items():
            said += _lost(f"{server}, {level:,} at once", own)
        shares = tables.spreads(samples, "client_busy")
        full = [server for server, share in shares.items() if share.median >= SATURATED]
        busy += [f"{server} ({level:,} at once)" for server in full]
    if busy:
        said.append(
            "The client was busy all the time, so the times are its own as much as the server's, "
            f"with {', '.join(busy)}."
        )
    for level, samples in levels.items():
        connect = tables.spreads(samples, quantile("connect", "median")).get(tables.BASELINE)
        if level >= MANY and connect:
            said.append(
                f"The client begins {level:,} connections one after the other: a connection to the "
                "baseline (floor), which does nothing but accept and answer, took "
                f"{connect.median:.1f} ms (the median). That much of each connect time is the "
                "client's and the kernel's."
            )
    if content.name.startswith("cgi") and levels:
        said.append(
            f"{' and '.join(NOT_CGI)} run programs, too, but are left out: they pass on the head "
            "of a program's output with its line ends unchanged, which is not HTTP."
        )
    return said


def _lost(where: str, samples: Sequence[Record]) -> list[str]:
    """Long connects that are those of a full backlog, and requests that failed."""
    said = []
    for count, requests in sorted(_counted(samples, "repeated_syn").items()):
        syns = "a repeated SYN" if count == "1" else f"{count} repeated SYNs"
        said.append(
            f"{where}: {requests:,} {'request' if requests == 1 else 'requests'} waited for "
            f"{syns}, about {REPEATS[int(count) - 1]} s: its backlog was full."
        )
    if failed := sum(one["failed"] for one in samples):
        kinds = _counted(samples, "errors").items()
        known = ", ".join(f"{kind}: {count:,}" for kind, count in kinds)
        asked = sum(one["requests"] for one in samples)
        said.append(
            f"{where}: {failed:,} of {asked:,} requests failed{f' ({known})' if known else ''}; "
            "the times are those of the others."
        )
    return said


def _failures(results: Results, kind: str) -> list[str]:
    """A sentence for each reason for which something of a content could not be measured."""
    found: dict[str, list[str]] = {}
    for one in results.failures:
        if str(one.get("what", "")).startswith(f"ordered {kind} at "):
            found.setdefault(one["reason"], []).append(one["what"].removeprefix("ordered "))
    return [f"Failed: {'; '.join(steps)}: {reason}." for reason, steps in found.items()]


def _compared(content: Content, level: int, samples: Sequence[Record]) -> list[Table | Panels]:
    requests = max(one["requests"] for one in samples)
    name = f"ordered-{content.name}-{level}"
    title = f"{content.title}: {requests:,} requests, {level:,} at once"
    own = tables.by_server(samples)
    x = Axis("share of the requests, ordered", "%", low=0, high=100)
    panels = []
    for part in PARTS:
        lines = [_line(server, taken, part) for server, taken in own.items()]
        y = Axis(f"{part} time", "ms", log=True)
        panels.append(Lines(f"{name}-{part}", WORDS[part], x, y, lines))
    caption = "Medians of the rounds, and from the lowest to the highest round."
    several = max(map(len, own.values())) > 1
    figure = Panels(f"{name}-curves", title, panels, caption=caption if several else "")
    note = (
        "Medians of the rounds, with the lowest and the highest; failed requests, and those that "
        "waited for a repeated SYN, are the sums of all rounds. CPU: all processes of the server; "
        "there is no number where the kernel does not count the processes that the server starts."
    )
    return [figure, tables.compared(name, title, samples, VALUES, RANKING, note=note)]


def _line(server: str, samples: Sequence[Record], part: str) -> Line:
    """One of the times by share of the requests, over the rounds."""
    curves = [curve(one[part]) for one in samples if one["answered"]]
    found = [(share, spread(one[share] for one in curves)) for share in SHARES]
    drawn = tables.line(server, ((share, one) for share, one in found if one))
    several = len(curves) > 1
    return replace(drawn, band=[b for b in drawn.band if several and b[0] in BANDS])


def _clients(results: Results) -> list[Section]:
    """Medians of both clients, and whether they agree."""
    said = _failures(results, second_client.KIND)
    last = tables.latest(one for one in results.samples if "ab_ms" in one)
    if not last:
        return [Section(CLIENTS, said)] if said else []
    columns = [Column("server"), Column("at once")]
    for part in PARTS:
        columns += [Column(f"{part} time, ours", "ms", 2), Column(f"{part} time, ab", "ms")]
    columns += [Column(f"{client} busy", "%", scale=100) for client in ("our client", "ab")]
    rows: list[list[Cell]] = []
    ratios = []
    for one in last:
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


def _beside(levels: Mapping[str, Levels]) -> Table:
    """The study's numbers, and medians of today at the most clients at once."""
    columns = [Column("content and time")]
    columns += [Column(f"{name}, 2008") for name in originals.KLONE]
    columns += [Column("clients at once today")]
    columns += [Column(f"{name} today, median", "ms", 2) for name, _ in TODAY]
    titles = {content.name: content.title for content in CONTENTS}
    rows: list[list[Cell]] = []
    for content, part, *said in originals.TABLES["2008 times"]:
        today: list[Cell] = [None] * (1 + len(TODAY))
        if levels[content]:
            level, most = list(levels[content].items())[-1]
            own, median = tables.by_server(most), quantile(part, "median")
            first = (next(filter(own.__contains__, known), "") for _, known in TODAY)
            today = [float(level), *(tables.cell(own.get(one, []), median) for one in first)]
        rows.append([f"{titles[content]}: {part}", *said, *today])
    return Table(
        "ordered-klone",
        "What the study of 2008 had, in ms",
        columns,
        rows,
        note="The study: 1,000 requests (100 of the file) by Apache Bench over a network, a Xeon "
        "3060; figures from its text, because its diagrams show no numbers. Its active page was of "
        "KLone's own kind, with lighttpd running PHP. Of today's servers, the first one measured "
        "in each of these lists: "
        + "; ".join(f"{name}: {', '.join(known)}" for name, known in TODAY)
        + ".",
    )
