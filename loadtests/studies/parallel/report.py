"""Report of the study `parallel`: overloaded servers and latencies."""

from __future__ import annotations

from functools import partial

from loadtests.clients.load import SATURATED
from loadtests.reporting.model import Axis, Cell, Column, Line, Lines, Section, Table
from loadtests.servers.lists import PROXIED, WSGI, colour_of
from loadtests.stats.results import Results
from loadtests.store import Record
from loadtests.studies import sample
from loadtests.studies.originals import poorhttp_2010
from loadtests.studies.originals.poorhttp_2010 import AT_ONCE, MOST_UNANSWERED
from loadtests.studies.parallel import ramp

NAME = "parallel"
SLOW = "slow"
TITLES = {
    "light": "The light page",
    "heavy": "The heavy page",
    SLOW: "A handler that waits",
}
_OURS = frozenset(server.name for server in (*WSGI, *PROXIED) if server.ours)


_ORDER = [
    server.name
    for server in (
        *(one for one in WSGI if one.ours),
        *PROXIED,
        *(one for one in WSGI if not one.ours),
    )
]
"""As in the tables of the study: ours, ours behind a proxy, the others."""


def _order(results: Results, handler: str) -> list[str]:
    measured = set(results.servers(handler))
    return [name for name in _ORDER if name in measured]


def _samples(results: Results, handler: str, server: str) -> list[Record]:
    return [one for one in results.samples if (one["scenario"], one["server"]) == (handler, server)]


def _flooded(results: Results, handler: str, server: str) -> str:
    """When, or not within how long."""
    samples = _samples(results, handler, server)
    moments = [one["flooded_after"] for one in samples if one["flooded_after"] is not None]
    if not moments:
        return f"not in {max(one['limit'] for one in samples):g} s"
    words = f"after {min(moments):.1f} s"
    return words if len(samples) == 1 else f"{words}, {len(moments)} of {len(samples)} times"


COLUMNS = (
    Column("server"),
    Column("ans/s", places=1),
    Column("req/s", places=1),
    Column("preq/s", places=1),
    Column("ans t", "ms", 2, 1e-3),
    Column("req t", "ms", 2, 1e-3),
    Column("req t p99", "ms", 1, 1e-3),
    Column("most unanswered"),
    Column(f"{MOST_UNANSWERED} unanswered"),
    Column("server CPU per request", "µs"),
    Column("client busy", "%", 0, 100),
    Column("unanswered at the end"),
    Column("failed"),
)


def _left(results: Results, handler: str, server: str) -> int:
    """Requests that were unanswered when it was over."""
    return sum(int(one["errors"].get("timeout", 0)) for one in _samples(results, handler, server))


def _failed(results: Results, handler: str, server: str) -> int:
    """But for those that were unanswered when it was over."""
    return sum(
        int(count)
        for one in _samples(results, handler, server)
        for kind, count in one["errors"].items()
        if kind != "timeout"
    )


def _row(results: Results, handler: str, server: str) -> list[Cell]:
    median = partial(results.median, handler, server)
    return [
        server,
        sample.per_second(results, handler, server, "answer_us"),
        sample.per_second(results, handler, server, "mean_us"),
        median("rate"),
        median("answer_us"),
        median("mean_us"),
        median("p99_us"),
        median("most_unanswered"),
        _flooded(results, handler, server),
        median("cpu_us"),
        median("client_busy"),
        _left(results, handler, server),
        _failed(results, handler, server),
    ]


def _table(results: Results, handler: str) -> Table:
    rows = [_row(results, handler, server) for server in _order(results, handler)]
    note = "Times are those of answered requests: what was unanswered at the end took longer."
    return Table(f"{NAME}-{handler}", TITLES[handler], COLUMNS, rows, _OURS, note)


def _line(results: Results, handler: str, server: str) -> Line:
    """The worst of the rounds."""
    waiting: list[int] = max(
        (one["unanswered"] for one in _samples(results, handler, server)), key=max
    )
    points = [(float(second), float(count)) for second, count in enumerate(waiting)]
    return Line(server, colour_of(server), points, strong=server in _OURS)


def _lines(results: Results, handler: str) -> Lines:
    return Lines(
        f"{NAME}-{handler}",
        f"{AT_ONCE} new requests each second: {TITLES[handler].lower()}",
        Axis("time", "s", low=0),
        Axis("most unanswered in the second", low=0),
        [_line(results, handler, server) for server in _order(results, handler)],
        f"who has {MOST_UNANSWERED} counts as flooded, and is asked no more",
        f"Who answers all of them within the second stays at {AT_ONCE} or below; behind the last "
        "burst is the time in which the rest may be answered.",
        marks=True,
    )


def _remarks(results: Results, handler: str) -> list[str]:
    order = _order(results, handler)
    flooded, behind, saturated, silent = [], [], [], []
    for server in order:
        samples = _samples(results, handler, server)
        moments = [one["flooded_after"] for one in samples if one["flooded_after"] is not None]
        most = max(one["most_unanswered"] for one in samples)
        if moments:
            flooded.append(f"{server} (after {min(moments):.1f} s)")
        elif most > AT_ONCE:
            behind.append(f"{server} ({most:,} at most)")
        if not moments and (left := _left(results, handler, server)):
            silent.append(f"{server} ({left:,})")
        if any(one["client_busy"] >= SATURATED for one in samples):
            saturated.append(server)
    said = []
    title = TITLES[handler]
    if flooded:
        said.append(f"{title}: {MOST_UNANSWERED} were unanswered at {', '.join(flooded)}.")
    else:
        said.append(f"{title}: nobody had {MOST_UNANSWERED} unanswered requests.")
    if behind:
        said.append(
            f"Not done with a second's requests when the next came, but below "
            f"{MOST_UNANSWERED}: {', '.join(behind)}."
        )
    if silent:
        said.append(
            f"Unanswered when it was over, of a server that hangs or lags: {', '.join(silent)}."
        )
    if saturated:
        said.append(f"The client had no time left with {', '.join(saturated)}.")
    return said + sample.failed(results, handler, order, "timeout")


def _then() -> Table:
    columns = (
        Column("configuration"),
        Column("ans/s", places=2),
        Column("req/s", places=2),
        Column("preq/s", places=2),
        Column("ans t", "s", 4),
        Column("req t", "s", 4),
        Column(f"{MOST_UNANSWERED} unanswered"),
    )
    rows = [
        (*row, "reached" if row.name in poorhttp_2010.FLOODED else "not reached")
        for row in poorhttp_2010.PARALLEL
    ]
    return Table(
        f"{NAME}-2010",
        f"What the study of {poorhttp_2010.YEAR} had",
        columns,
        rows,
        note=f"The light page over an ad-hoc WLAN, from a netbook, for {poorhttp_2010.SECONDS} "
        "seconds or until its client was flooded; it does not say when that was.",
    )


def report(results: Results) -> list[Section]:
    """The table of the study for each handler, and how many requests were unanswered when."""
    handlers = [handler for handler in TITLES if handler in results.scenarios()]
    waits = sorted({one["waits"] for one in results.samples if "waits" in one})
    text = [
        f"What if requests come whether or not those before are answered? {AT_ONCE} at once at the "
        f"beginning of each second, until {MOST_UNANSWERED} are unanswered. Times count from the "
        "beginning of the second, also for a request that had to wait to be connected; *preq/s* is "
        "how many were answered in the time of the test.",
    ]
    if waits:
        text.append(
            f"The handler that waits does so for {waits[0] * 1e3:g} ms, as for a database: the "
            "pages themselves are too quick today for a hundred of them to matter, but who does "
            f"one thing at a time can wait no more than {1 / waits[0]:.0f} times a second."
        )
    parts: list[Table | Lines] = []
    for handler in handlers:
        text += _remarks(results, handler)
        parts += [_table(results, handler), _lines(results, handler)]
    if raised := ramp.table(results, NAME, _ORDER, _OURS):
        parts.append(raised)
    return [Section(f"{AT_ONCE} new requests each second", text, [*parts, _then()])]
